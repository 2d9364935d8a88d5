# Matrix product on the matrix unit, f16 operands and f16 partial sums:
#
#       out(m, n) = sum over k of x(m, k) * w(n, k)
#
# and with ADD = 1 (the kernel `gemm_add`, from 25 rows on) that added to what `out` holds.
#
# x and out are panels of ROWS rows, w is the coefficients: CG groups of 16 channels by KB blocks of 16 inner channels.
# Sums are f32 inside a block of 16 inner channels and rounded to f16 once per block, in ascending order of blocks.
#
# Arguments: 0 x, 1 w, 2 out. x and out lie in different conflict units, out in region 1.
#
# The supervisor loads a block of coefficients, starts the workers, waits, and goes on to the next block, group by group. Nothing
# is drained between blocks: accumulators, registers and pointers survive `exitz` and `runall`, so the first row of a
# block returns the last row of the block before, across groups too (isa-notes 10.2).
#
# With ADD the first row's partial sums go in while the last row of the group before comes out, beside four calls without x.
#
# Two schemes, by the number of rows:
#   ring     (ROWS <= 12) two rows a worker. The partial sums never leave the accumulators: what a call returns is
#            the next call's partial operand, and one call with a zero operand makes five calls of four.
#   stream   n = ROWS/6 or one more rows a worker, partial sums in place in `out`. The bundle of call t multiplies the words that
#            bundle t - 1 loaded, loads x word t + 1 and partial word t + 5, and stores word t - 6, the result of call t - 2.
#            11 is odd: load and store differ in address bit 3 and may share a pair of memory elements.
#            A word is stored 11 calls after it was loaded and must be stored before the next block loads it, 4n calls
#            later: n >= 3. Up to 24 rows (n = 3 or 4) workers with one row less repeat their last row, which loads and
#            stores the same values again.
#
# Measured, complete calls, clocks, coefficients in region 1 (WMEM=1): 80 inner channels, 80 channels: 12 rows 3,421, 16 rows 3,775, 92 rows
# 11,601, 96 rows 11,701; 80 inner channels, 96 channels: 12 rows 4,074, 92 rows 13,878 (about 451 a block of 92 rows), 96 rows 13,998.

        .ifndef ADD
        .equ    ADD, 0
        .endif
        .equ    N, ROWS/6
        .equ    EXTRA, ROWS-6*N
        .equ    N_MAX, N+min(EXTRA,1)
        .equ    MIDDLES, KB-2

        # 16 channels in natural order: units 0, 1, 8, 9, 2, 3, 10, 11, ..., four entries each (isa-notes 10.1).
        .macro  load_four first
        .if     WMEM == 1
        ld128putcs \first
        ld128putcs \first+2
        .else
        ld64putcs \first
        ld64putcs \first+1
        ld64putcs \first+2
        ld64putcs \first+3
        .endif
        .endm
        .macro  load_coefficients
        load_four 0
        load_four 4
        load_four 32
        load_four 36
        load_four 8
        load_four 12
        load_four 40
        load_four 44
        load_four 16
        load_four 20
        load_four 48
        load_four 52
        load_four 24
        load_four 28
        load_four 56
        load_four 60
        .endm

        .text
        .globl  gemm
        .supervisor
        .align  8
gemm:
        # $m1 group of coefficients, $m2 block after the one being loaded, $m4 groups left less one.
        ld32    $m1, $m0, $m15, 1
        setzi   $m3, .Lbegin
        setzi   $m4, CG-1
        setzi   $m5, .Lmiddle
        setzi   $m6, .Llast
        setzi   $m7, W_PANEL
        put     $CCCSLOAD, $m1
.Lgroup:
        add     $m2, $m1, $m7
        add     $m1, $m1, 512
        load_coefficients
        runall  $m3, $m0, 0
        .if     KB > 1
        put     $CCCSLOAD, $m2
        .else
        put     $CCCSLOAD, $m1
        .endif
        setzi   $m3, .Lfirst
        setzi   $m8, max(MIDDLES-1,0)
        sync    2
        .if     MIDDLES > 0
.Lblock:
        add     $m2, $m2, $m7
        load_coefficients
        runall  $m5, $m0, 0
        put     $CCCSLOAD, $m2
        sync    2
        brnzdec $m8, .Lblock
        .endif
        .if     KB > 1
        load_coefficients
        runall  $m6, $m0, 0
        put     $CCCSLOAD, $m1
        sync    2
        .endif
        brnzdec $m4, .Lgroup
        setzi   $m3, .Ldrain
        runall  $m3, $m0, 0
        sync    2
        br      $m10

        .worker
        .if     ROWS <= 12

        # ---- ring: rows a = min(w, ROWS - 1) and b = min(w + 6, ROWS - 1); equal rows compute and store the same twice.
        # $m4 x stride from row a to row b, $m5 from row b to row a of the next panel, $m6 x pointer, $m8 its start,
        # $m7 and $m9 the two rows of the group's result.

        # One call: the next word of x beside it.
        .macro  ring result, partial, phase, stride
        { ld64step $a0:1, $m15, $m6+=, \stride
          f16v4hihov4amp \result, $a0:1, \partial, \phase }
        .endm
        # Multiply the row; what comes back goes in again, as the partial sums of the row after.
        .macro  ring_feed stride
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P0, 1
        ring    $a4:5, $a4:5, TAMP_F16V4_E4_P1, 1
        ring    $a4:5, $a4:5, TAMP_F16V4_E4_P2, \stride
        ring    $a4:5, $a4:5, TAMP_F16V4_E4_P3, 1
        { nop
          f16v4hihov4amp $a6:7, $azeros, $a4:5, TAMP_F16V4_E4_P3 }
        .endm
        # Multiply the row; what comes back is a result and is stored at `row`. The next word of x is not loaded.
        .macro  ring_store row, stride
        ring    $a2:3, $azeros, TAMP_F16V4_E4_P0, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P1, 1
        ring    $a6:7, $azeros, TAMP_F16V4_E4_P2, \stride
        { st64    $a2:3, \row, $m15, 0
          f16v4hihov4amp $a2:3, $a0:1, $azeros, TAMP_F16V4_E4_P3 }
        st64    $a4:5, \row, $m15, 1
        st64    $a6:7, \row, $m15, 2
        st64    $a2:3, \row, $m15, 3
        .endm

        .align  8
.Lbegin:
        get     $m0, $WSR
        and     $m0, $m0, 7
        min     $m1, $m0, ROWS-1
        add     $m2, $m0, 6
        min     $m2, $m2, ROWS-1
        sub     $m3, $m2, $m1
        shl     $m3, $m3, 2
        add     $m4, $m3, -3
        sub     $m5, X_PANEL/8-3, $m3
        ld32    $m8, $m13, $m15, 0
        ld32    $m7, $m13, $m15, 2
        shl     $m1, $m1, 5
        shl     $m2, $m2, 5
        add     $m8, $m8, $m1
        add     $m9, $m7, $m2
        add     $m7, $m7, $m1
        setzi   $a4, 8
        uput    $FP_CLR, $a4
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P0, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P1, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P2, $m4
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P3, 1
        bri     .Lsecond
        .align  8
.Lfirst:
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        ring_store $m9, $m4
        ld64step $a0:1, $m15, $m6+=, 1
        add     $m7, $m7, OUT_PANEL
        add     $m9, $m9, OUT_PANEL
        .align  8
.Lsecond:
        .if     KB > 1
        ring_feed $m5
        .else
        ring_store $m7, 1
        .endif
        exitz   $m15
        .align  8
.Lmiddle:
        ring_feed $m4
        ring_feed $m5
        exitz   $m15
        .align  8
.Llast:
        ring_feed $m4
        ring_store $m7, 1
        exitz   $m15
        .align  8
.Ldrain:
        { nop
          f16v4hihov4amp $a0:1, $azeros, $azeros, TAMP_F16V4_E4_P0 }
        { st64    $a0:1, $m9, $m15, 0
          f16v4hihov4amp $a2:3, $azeros, $azeros, TAMP_F16V4_E4_P1 }
        { st64    $a2:3, $m9, $m15, 1
          f16v4hihov4amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P2 }
        { st64    $a4:5, $m9, $m15, 2
          f16v4hihov4amp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P3 }
        st64    $a6:7, $m9, $m15, 3
        exitz   $m15

        .else

        # ---- stream: worker w takes consecutive rows, the first EXTRA workers one more.
        # $m1 bytes from the end of this worker's rows to the next panel of x, $m2:3 addresses (x, partial, result), $m4 strides, $m5 rows of the inner loop, $m6 x word 1 of the block,
        # $m7 rows of this worker in the group's result, $m8 in x, $m9 bytes from there to word 4n - 6,
        # $m10 and $m11 addresses to pack.
        #
        # Stride codes: 0 next word; 1 back from the last word of a worker's rows to the first; 2 from the last word of x to the
        # next panel; 3 (up to 24 rows) from the last but one row to the last: the next word, or the same row again.
        # In a triple access x has bits 1:0, the partial 3:2, the store 5:4; in a double one x 1:0 and the store 3:2.

        .equ    NEXT_PANEL, X_PANEL/8+1-4*N
        .if     N_MAX <= 4
        .equ    REPEAT, 1
        .else
        .equ    REPEAT, 0
        .endif
        .if     NEXT_PANEL > 511
        .equ    FAR, 1
        .equ    X_LAST, 0
        .else
        .equ    FAR, 0
        .equ    X_LAST, 2
        .endif
        .if     N_MAX == 3
        .equ    PARTIAL_0, 12
        .equ    PARTIAL_1, 0
        .else
        .equ    PARTIAL_0, 0
        .equ    PARTIAL_1, 12*REPEAT
        .endif

        # The call forms: x and partial loaded, or x alone; the partial operand loaded, or zero.
        .macro  update result, phase, codes
        { ld2xst64pace $a0:3, \result, $m2:3+=, $m4, \codes
          f16v4hihov4amp \result, $a0:1, $a2:3, \phase }
        .endm
        .macro  enter result, phase, codes
        { ld2xst64pace $a0:3, \result, $m2:3+=, $m4, \codes
          f16v4hihov4amp \result, $a0:1, $azeros, \phase }
        .endm
        .macro  leave result, phase, codes
        { ldst64pace $a0:1, \result, $m2:3+=, $m4, \codes
          f16v4hihov4amp \result, $a0:1, $a2:3, \phase }
        .endm
        .macro  start result, phase, codes
        { ldst64pace $a0:1, \result, $m2:3+=, $m4, \codes
          f16v4hihov4amp \result, $a0:1, $azeros, \phase }
        .endm
        .macro  fill result, phase
        { ld64step $a0:1, $m15, $m6+=, 1
          f16v4hihov4amp \result, $a0:1, $azeros, \phase }
        .endm
        # With ADD, words of partial sums without x: at the very start, and beside the last row of the group before; then with x.
        .macro  prime phase
        { ld64step $a2:3, $m15, $m6+=, 1
          f16v4hihov4amp $a4:5, $azeros, $a2:3, \phase }
        .endm
        .macro  change result, phase
        { ldst64pace $a2:3, \result, $m2:3+=, $m4, 0
          f16v4hihov4amp \result, $azeros, $a2:3, \phase }
        .endm
        .macro  fill_add result, phase
        { ld2x64pace $a0:1, $a2:3, $m2:3+=, $m4, 0
          f16v4hihov4amp \result, $a0:1, $a2:3, \phase }
        .endm
        .macro  row_update c0, c1, c2, c3
        update  $a4:5, TAMP_F16V4_E4_P0, \c0
        update  $a6:7, TAMP_F16V4_E4_P1, \c1
        update  $a4:5, TAMP_F16V4_E4_P2, \c2
        update  $a6:7, TAMP_F16V4_E4_P3, \c3
        .endm
        .macro  row_start c2
        start   $a4:5, TAMP_F16V4_E4_P0, 0
        start   $a6:7, TAMP_F16V4_E4_P1, 0
        start   $a4:5, TAMP_F16V4_E4_P2, \c2
        start   $a6:7, TAMP_F16V4_E4_P3, 0
        .endm
        # The last row of a block, up to word 0 of the next panel of x. A jump too far for a stride is added to the pointer, which
        # tapack leaves in the low bits of the first register (isa-notes 4).
        .macro  row_to_next_panel
        update  $a4:5, TAMP_F16V4_E4_P0, 0
        update  $a6:7, TAMP_F16V4_E4_P1, 0
        update  $a4:5, TAMP_F16V4_E4_P2, X_LAST
        .if     FAR == 1
        { add     $m2, $m2, $m1
          fnop }
        .endif
        update  $a6:7, TAMP_F16V4_E4_P3, 0
        .endm
        # Rows 0 to n - 3 of a block whose partial sums are loaded; in row 1 the result pointer returns.
        .macro  head_update
        row_update 0, 48*REPEAT, PARTIAL_0, 0
        .if     N_MAX > 3
        row_update 0, 16, PARTIAL_1, 0
        .endif
        .if     REPEAT == 0
        { rpt     $m5, 3
          fnop }
        row_update 0, 0, 0, 0
        .endif
        .if     N_MAX > 3
        update  $a4:5, TAMP_F16V4_E4_P0, 0
        update  $a6:7, TAMP_F16V4_E4_P1, 0
        .else
        update  $a4:5, TAMP_F16V4_E4_P0, 0
        update  $a6:7, TAMP_F16V4_E4_P1, 16
        .endif
        .endm

        .align  8
.Lbegin:
        get     $m0, $WSR
        and     $m0, $m0, 7
        mul     $m1, $m0, N
        min     $m2, $m0, EXTRA
        add     $m1, $m1, $m2
        cmpslt  $m2, $m0, EXTRA
        ld32    $m8, $m13, $m15, 0
        ld32    $m7, $m13, $m15, 2
        shl     $m1, $m1, 5
        add     $m8, $m8, $m1
        add     $m7, $m7, $m1
        add     $m5, $m2, N-4
        shl     $m3, $m2, 2
        sub     $m4, 1-4*N, $m3
        and     $m4, $m4, 1023
        sub     $m3, NEXT_PANEL, $m3
        .if     FAR == 1
        add     $m1, $m3, -1
        shl     $m1, $m1, 3
        .endif
        and     $m3, $m3, 1023
        shl     $m3, $m3, 10
        or      $m4, $m4, $m3
        .if     REPEAT == 1
        # Stride 3: 1 with all rows, -3 with one row less.
        .if     EXTRA > 0
        shl     $m3, $m2, 2
        add     $m3, $m3, -3
        and     $m3, $m3, 1023
        shl     $m3, $m3, 20
        .else
        setzi   $m3, 1
        shl     $m3, $m3, 20
        .endif
        or      $m4, $m4, $m3
        setzi   $m9, 32*N_MAX-48
        .else
        shl     $m9, $m2, 5
        add     $m9, $m9, 32*N-48
        .endif
        setzi   $a4, 8
        uput    $FP_CLR, $a4
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        .if     ADD == 1
        mov     $m6, $m7
        ld64step $a2:3, $m15, $m6+=, 1
        .align  8
        prime   TAMP_F16V4_E4_P0
        prime   TAMP_F16V4_E4_P1
        prime   TAMP_F16V4_E4_P2
        prime   TAMP_F16V4_E4_P3
        bri     .Ladd
        .align  8
.Lfirst:
        # The last six words of the group before are stored here.
        add     $m11, $m7, $m9
        add     $m7, $m7, OUT_PANEL
        mov     $m6, $m7
        ld64step $a2:3, $m15, $m6+=, 1
        tapack  $m2:3, $m6, $m6, $m11
        .align  8
        change  $a4:5, TAMP_F16V4_E4_P0
        change  $a6:7, TAMP_F16V4_E4_P1
        change  $a4:5, TAMP_F16V4_E4_P2
        change  $a6:7, TAMP_F16V4_E4_P3
        st64pace $a4:5, $m2:3+=, $m4, 0
        st64pace $a6:7, $m2:3+=, $m4, 0
.Ladd:
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        add     $m10, $m7, 40
        tapack  $m2:3, $m6, $m10, $m10
        .align  8
        fill_add $a4:5, TAMP_F16V4_E4_P0
        fill_add $a6:7, TAMP_F16V4_E4_P1
        fill_add $a4:5, TAMP_F16V4_E4_P2
        fill_add $a6:7, TAMP_F16V4_E4_P3
        fill_add $a4:5, TAMP_F16V4_E4_P0
        fill_add $a6:7, TAMP_F16V4_E4_P1
        add     $m6, $m8, 56
        add     $m10, $m7, 88
        tapack  $m2:3, $m6, $m10, $m7
        .align  8
        update  $a4:5, TAMP_F16V4_E4_P2, 0
        update  $a6:7, TAMP_F16V4_E4_P3, 0
        { rpt     $m5, 3
          fnop }
        row_update 0, 0, 0, 0
        update  $a4:5, TAMP_F16V4_E4_P0, 0
        update  $a6:7, TAMP_F16V4_E4_P1, 0
        .if     KB > 1
        update  $a4:5, TAMP_F16V4_E4_P2, 4
        update  $a6:7, TAMP_F16V4_E4_P3, 0
        row_to_next_panel
        .else
        update  $a4:5, TAMP_F16V4_E4_P2, 0
        leave   $a6:7, TAMP_F16V4_E4_P3, 0
        row_start 0
        .endif
        exitz   $m15
        .else
        .align  8
        fill    $a4:5, TAMP_F16V4_E4_P0
        fill    $a6:7, TAMP_F16V4_E4_P1
        fill    $a4:5, TAMP_F16V4_E4_P2
        fill    $a6:7, TAMP_F16V4_E4_P3
        fill    $a4:5, TAMP_F16V4_E4_P0
        fill    $a6:7, TAMP_F16V4_E4_P1
        bri     .Ljoin
        .align  8
.Lfirst:
        # The last six words of the group before are stored here.
        add     $m11, $m7, $m9
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        tapack  $m2:3, $m6, $m6, $m11
        .align  8
        start   $a4:5, TAMP_F16V4_E4_P0, 0
        start   $a6:7, TAMP_F16V4_E4_P1, 12*REPEAT
        start   $a4:5, TAMP_F16V4_E4_P2, 0
        start   $a6:7, TAMP_F16V4_E4_P3, 0
        start   $a4:5, TAMP_F16V4_E4_P0, 0
        start   $a6:7, TAMP_F16V4_E4_P1, 0
        add     $m7, $m7, OUT_PANEL
.Ljoin:
        add     $m6, $m8, 56
        tapack  $m2:3, $m6, $m7, $m7
        .align  8
        .if     N_MAX > 3
        start   $a4:5, TAMP_F16V4_E4_P2, 0
        start   $a6:7, TAMP_F16V4_E4_P3, 0
        .if     REPEAT == 0
        { rpt     $m5, 3
          fnop }
        row_start 0
        .endif
        start   $a4:5, TAMP_F16V4_E4_P0, 0
        start   $a6:7, TAMP_F16V4_E4_P1, 0
        .endif
        start   $a4:5, TAMP_F16V4_E4_P2, 3*REPEAT
        .if     KB > 1
        enter   $a6:7, TAMP_F16V4_E4_P3, 0
        row_to_next_panel
        .else
        start   $a6:7, TAMP_F16V4_E4_P3, 0
        row_start 0
        .endif
        exitz   $m15
        .endif
        .align  8
.Lmiddle:
        head_update
        update  $a4:5, TAMP_F16V4_E4_P2, 4+3*REPEAT
        update  $a6:7, TAMP_F16V4_E4_P3, 0
        row_to_next_panel
        exitz   $m15
        .align  8
.Llast:
        head_update
        update  $a4:5, TAMP_F16V4_E4_P2, 3*REPEAT
        leave   $a6:7, TAMP_F16V4_E4_P3, 0
        row_start 0
        exitz   $m15
        .align  8
.Ldrain:
        { st64pace $a4:5, $m2:3+=, $m4, 0
          f16v4hihov4amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P0 }
        { st64pace $a6:7, $m2:3+=, $m4, 3*REPEAT
          f16v4hihov4amp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P1 }
        { st64pace $a4:5, $m2:3+=, $m4, 0
          f16v4hihov4amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P2 }
        { st64pace $a6:7, $m2:3+=, $m4, 0
          f16v4hihov4amp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P3 }
        st64pace $a4:5, $m2:3+=, $m4, 0
        st64pace $a6:7, $m2:3+=, $m4, 0
        exitz   $m15
        .endif
