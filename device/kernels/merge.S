# Joins the partial results of attention over PARTS groups of keys (log-sum-exp):
#
#       M = max of m_j    e_j = exp(m_j - M)    out = sum of e_j * O_j / sum of e_j * l_j
#
# O_j(m, n) are the unnormalised sums of part j, dense panels of ROWS rows, and (m_j, l_j) its statistics of the row, f32.
# The factors e_j / sum are computed in f32 and rounded to f16, so are the products; the sum over the parts is f32.
#
# Arguments: 0 parts, PARTS x CG panels, 1 stats, f32[PARTS][ROWS][2], 2 out, CG panels OUT_PANEL bytes apart.
# Worker w takes the rows w, w + 6, ... Its scratch area holds e_j (f32) and then the factors (f16, both halves), 4 bytes each.
#
# Measured, a complete call: 12 rows of 80 columns, 8 parts, 6,246 clocks.

        .equ    ROW_COUNT, ROWS/6
        .equ    ROW_EXTRA, ROWS-6*ROW_COUNT

        .text
        .globl  merge
        .supervisor
        .align  8
merge:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        .worker
        .align  8
.Lworker:
        # $m0 row of part 0, $m1 statistics of part 0, $m2 row of out, $m3 rows left less one, $m4 to the next part's row (words
        # of 8 bytes, less one), $m5 parts, $m6 and $m7 pointers, $m8 panels left, $m9 pair of words, $m11 stride of statistics.
        get     $m7, $WSR
        and     $m7, $m7, 7
        cmpslt  $m3, $m7, ROW_EXTRA
        add     $m3, $m3, ROW_COUNT-1
        brneg   $m3, .Lnone
        ld32    $m0, $m13, $m15, 0
        ld32    $m1, $m13, $m15, 1
        ld32    $m2, $m13, $m15, 2
        shl     $m6, $m7, 5
        add     $m0, $m0, $m6
        add     $m2, $m2, $m6
        shl     $m6, $m7, 3
        add     $m1, $m1, $m6
        ldconst $m4, CG*ROWS*4-1
        setzi   $m5, PARTS
        setzi   $m11, ROWS*2
        setzi   $a4, 8
        uput    $FP_CLR, $a4
.Lrow:
        # The maximum of m_j.
        mov     $m6, $m1
        ld32    $a0, $m1, $m15, 0
        mov     $a1, $a0
        .align  8
        { rpt     $m5, 0
          fnop }
        { ld32step $a0, $m15, $m6+=, $m11
          f32max  $a1, $a1, $a0 }
        f32max  $a1, $a1, $a0
        # e_j, and the sum of e_j * l_j in $a2.
        mov     $m6, $m1
        mov     $m7, $m12
        .align  8
        { rpt     $m5, 5
          zero    $a2 }
        { ld32    $a3, $m6, $m15, 1
          fnop }
        { ld32step $a0, $m15, $m6+=, $m11
          fnop }
        { nop
          f32sub  $a0, $a0, $a1 }
        { nop
          f32exp  $a0, $a0 }
        { st32step $a0, $m15, $m7+=, 1
          f32mul  $a3, $a0, $a3 }
        { nop
          f32add  $a2, $a2, $a3 }
        # Factors.
        f32oox  $a2, $a2
        mov     $m6, $m12
        mov     $m7, $m12
        .align  8
        { rpt     $m5, 3
          fnop }
        { ld32step $a0, $m15, $m6+=, 1
          fnop }
        { nop
          f32mul  $a0, $a0, $a2 }
        { nop
          f32tof16 $a0, $a0 }
        { st32step $a0, $m15, $m7+=, 1
          fnop }
        # Two words of the row at a time: products of one part in $a4:7, factor in $a2.
        mov     $m8, $m0
        mov     $m9, $m2
        setzi   $m10, 2*CG-1
.Lpair:
        .align  8
        { mov     $m6, $m8
          zero    $a4:5 }
        { mov     $m7, $m12
          zero    $a6:7 }
        { ld32step $a2, $m15, $m7+=, 1
          fnop }
        { rpt     $m5, 2
          fnop }
        { ld64step $a0:1, $m15, $m6+=, 1
          f16v8acc $a4:7 }
        { ld64step $a0:1, $m15, $m6+=, $m4
          f16v4mul $a4:5, $a2:BL, $a0:1 }
        { ld32step $a2, $m15, $m7+=, 1
          f16v4mul $a6:7, $a2:BL, $a0:1 }
        { add     $m8, $m8, 16
          f16v8acc $a4:7 }
        { nop
          f16v2gina $a0, $azero, 0 }
        { nop
          f16v2gina $a1, $azero, 0 }
        { st64step $a0:1, $m15, $m9+=, 1
          f16v2gina $a2, $azero, 0 }
        { and     $m6, $m10, 1
          f16v2gina $a3, $azero, 0 }
        { st64step $a2:3, $m15, $m9+=, 1
          fnop }
        brnz    $m6, .Lsame_panel
        add     $m8, $m8, ROWS*32-32
        add     $m9, $m9, OUT_PANEL-32
.Lsame_panel:
        brnzdec $m10, .Lpair
        add     $m0, $m0, 192
        add     $m1, $m1, 48
        add     $m2, $m2, 192
        brnzdec $m3, .Lrow
.Lnone:
        exitz   $m15
