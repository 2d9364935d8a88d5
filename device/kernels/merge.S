# Joins the partial results of attention over PARTS groups of keys (log-sum-exp):
#
#       M = max of m_j    e_j = exp(m_j - M)    out = sum of e_j * O_j / sum of e_j * l_j
#
# O_j(m, n) are the unnormalised sums of part j, dense panels of ROWS rows, and (m_j, l_j) its statistics of the row, f32.
# The factors e_j / sum are computed in f32 and rounded to f16, so are the products; the sum over the parts is f32.
#
# Arguments: 0 parts, PARTS x CG panels, 1 stats, f32[PARTS][ROWS][2], 2 out, CG panels OUT_PANEL bytes apart.
# Worker w takes the rows w, w + 6, ... Of three rows or fewer, two workers share a row's pairs of words, three its panels, or six
# its pairs, and each computes the row's factors. The scratch area of a worker holds e_j (f32) and then the factors (f16, both
# halves), 4 bytes each.
#
# Measured, a complete call of 80 columns: 12 rows, 8 parts, 5,934 clocks; one row, 16 parts, 1,996.

        .equ    ROW_COUNT, ROWS/6
        .equ    ROW_EXTRA, ROWS-6*ROW_COUNT
        # Workers that share a row; a comparison that holds is -1.
        .equ    SHARE, 1-(ROWS == 3)-2*(ROWS == 2)-5*(ROWS == 1)
        .equ    BY_PAIRS, 1-SHARE%2

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
        # of 8 bytes, less one), $m5 parts, $m6 and $m7 pointers, $m8 words of a row, $m9 pair of words, $m11 stride of statistics.
        get     $m7, $WSR
        and     $m7, $m7, 7
        .if     SHARE == 1
        cmpslt  $m3, $m7, ROW_EXTRA
        add     $m3, $m3, ROW_COUNT-1
        brneg   $m3, .Lnone
        .else
        # $m9 share of the row, $m10 pairs or panels behind the worker's first, and $m7 the row.
        setzi   $m3, 0
        .if     SHARE == 2
        and     $m9, $m7, 1
        shr     $m7, $m7, 1
        .endif
        .if     SHARE == 3
        cmpslt  $m9, $m7, 3
        cmpeq   $m8, $m9, 0
        mul     $m9, $m8, -3
        add     $m9, $m9, $m7
        mov     $m7, $m8
        .endif
        .if     SHARE == 6
        mov     $m9, $m7
        setzi   $m7, 0
        .endif
        setzi   $m10, CG*(1+BY_PAIRS)-1
        sub     $m10, $m10, $m9
        brneg   $m10, .Lnone
        .endif
        ld32    $m0, $m13, $m15, 0
        ld32    $m1, $m13, $m15, 1
        ld32    $m2, $m13, $m15, 2
        shl     $m6, $m7, 5
        add     $m0, $m0, $m6
        add     $m2, $m2, $m6
        shl     $m6, $m7, 3
        add     $m1, $m1, $m6
        .if     SHARE > 1
        .if     BY_PAIRS
        and     $m6, $m9, 1
        shl     $m6, $m6, 4
        add     $m0, $m0, $m6
        add     $m2, $m2, $m6
        shr     $m9, $m9, 1
        .endif
        mul     $m6, $m9, ROWS*32
        add     $m0, $m0, $m6
        ldconst $m6, OUT_PANEL
        mul     $m6, $m6, $m9
        add     $m2, $m2, $m6
        .endif
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
        # e_j, and the sum of e_j * l_j in $a2; a product is added while the next statistics come.
        mov     $m6, $m1
        mov     $m7, $m12
        setzi   $m8, ROWS
        zero    $a2
        .align  8
        { rpt     $m5, 3
          zero    $a3 }
        { ld64step $a4:5, $m15, $m6+=, $m8
          f32add  $a2, $a2, $a3 }
        { nop
          f32sub  $a0, $a4, $a1 }
        { nop
          f32exp  $a0, $a0 }
        { st32step $a0, $m15, $m7+=, 1
          f32mul  $a3, $a0, $a5 }
        f32add  $a2, $a2, $a3
        # Factors; one is rounded while the next e_j comes.
        f32oox  $a2, $a2
        mov     $m6, $m12
        mov     $m7, $m12
        ld32step $a0, $m15, $m6+=, 1
        f32mul  $a1, $a0, $a2
        .if     PARTS > 1
        setzi   $m8, PARTS-1
        .align  8
        { rpt     $m8, 1
          fnop }
        { ld32step $a0, $m15, $m6+=, 1
          f32tof16 $a3, $a1 }
        { st32step $a3, $m15, $m7+=, 1
          f32mul  $a1, $a0, $a2 }
        .endif
        f32tof16 $a3, $a1
        st32step $a3, $m15, $m7+=, 1
        # Two words of the row at a time: products of one part in $a4:7, factor in $a2.
        mov     $m8, $m0
        mov     $m9, $m2
        .if     SHARE == 1
        setzi   $m10, 2*CG-1
        .else
        .if     BY_PAIRS
        ldconst $m11, OUT_PANEL*SHARE/2-16
        .else
        ldconst $m11, OUT_PANEL*SHARE-32
        .endif
        .endif
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
        .if     SHARE == 1
        brnz    $m6, .Lsame_panel
        add     $m8, $m8, ROWS*32-32
        add     $m9, $m9, OUT_PANEL-32
.Lsame_panel:
        brnzdec $m10, .Lpair
        add     $m0, $m0, 192
        add     $m1, $m1, 48
        add     $m2, $m2, 192
        brnzdec $m3, .Lrow
        .else
        .if     BY_PAIRS
        add     $m8, $m8, ROWS*16*SHARE-16
        add     $m9, $m9, $m11
        .else
        cmpeq   $m3, $m3, 0
        brnz    $m3, .Lpair
        add     $m8, $m8, ROWS*32*SHARE-32
        add     $m9, $m9, $m11
        .endif
        add     $m10, $m10, -SHARE
        brpos   $m10, .Lpair
        .endif
.Lnone:
        exitz   $m15
