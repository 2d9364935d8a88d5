# Divides the rows of o by their sums, in place: o(m, n) *= 1 / stats[m].sum, the second f32 of each pair of `stats`.
# The reciprocal is taken in f32 and rounded to f16, the product is f16.
#
# Arguments: 0 o, 1 stats. o is CG panels of ROWS rows, O_PANEL bytes apart. Worker w takes the rows w, w + 6, ...
#
# Measured, a complete call: 92 rows of 80 columns, 5,012 clocks.

        .equ    ROW_COUNT, ROWS/6
        .equ    ROW_EXTRA, ROWS-6*ROW_COUNT

        .text
        .globl  normalise
        .supervisor
        .align  8
normalise:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        .worker
        .align  8
.Lworker:
        # $m0 row of o, $m1 statistics of the row, $m2 pointer, $m4 stride to the next panel, $m5 rows left less one, $m6 panels.
        get     $m7, $WSR
        and     $m7, $m7, 7
        cmpslt  $m5, $m7, ROW_EXTRA
        add     $m5, $m5, ROW_COUNT-1
        brneg   $m5, .Lnone
        ld32    $m0, $m13, $m15, 0
        ld32    $m1, $m13, $m15, 1
        shl     $m2, $m7, 5
        add     $m0, $m0, $m2
        shl     $m2, $m7, 3
        add     $m1, $m1, $m2
        setzi   $m4, O_PANEL/8-3
        setzi   $m6, CG
.Lrow:
        ld32    $a6, $m1, $m15, 1
        f32oox  $a6, $a6
        f32tof16 $a6, $a6
        mov     $m2, $m0
        mov     $m3, $m0
        .align  8
        { rpt     $m6, 7
          fnop }
        { ld64step $a0:1, $m15, $m2+=, 1
          fnop }
        { ld64step $a2:3, $m15, $m2+=, 1
          f16v4mul $a0:1, $a6:BL, $a0:1 }
        { st64step $a0:1, $m15, $m3+=, 1
          f16v4mul $a2:3, $a6:BL, $a2:3 }
        { ld64step $a0:1, $m15, $m2+=, 1
          fnop }
        { st64step $a2:3, $m15, $m3+=, 1
          f16v4mul $a0:1, $a6:BL, $a0:1 }
        { ld64step $a2:3, $m15, $m2+=, $m4
          fnop }
        { st64step $a0:1, $m15, $m3+=, 1
          f16v4mul $a2:3, $a6:BL, $a2:3 }
        { st64step $a2:3, $m15, $m3+=, $m4
          fnop }
        add     $m0, $m0, 192
        add     $m1, $m1, 48
        brnzdec $m5, .Lrow
.Lnone:
        exitz   $m15
