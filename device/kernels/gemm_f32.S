# Matrix product on the matrix unit, f16 operands and f32 partial sums, f16 result:
#
#       out(m, n) = sum over k of x(m, k) * w(n, k)
#
# x and out are panels of ROWS rows, w is the coefficients: CG groups of 16 channels by KB blocks of 16 inner channels.
# The sums are f32 throughout and rounded to f16 once.
#
# Arguments: 0 x, 1 w, 2 out, 3 partials, 32*ROWS bytes used. x and partials lie in different conflict units, partials in region 1.
#
# The forms with f32 partial sums have 8 channels, so a group is two halves, each a chain of KB blocks: begin, middle, ..., last,
# finish. Within a chain nothing is drained; gemm.S explains the two schemes, ring and stream. Finish returns the last row, then
# rounds the half's sums into `out`.
#
# Measured, complete calls, clocks, WMEM=1, 80 inner channels: 80 channels: 12 rows 6,407, 92 rows 26,801; 96 channels: 92 rows 32,121.

        .equ    N, ROWS/6
        .equ    EXTRA, ROWS-6*N
        .equ    N_MAX, N+min(EXTRA,1)
        .equ    MIDDLES, KB-2

        # 8 channels in natural order: units 0 to 7, four entries each (isa-notes 10.1).
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
        load_four 8
        load_four 12
        load_four 16
        load_four 20
        load_four 24
        load_four 28
        .endm

        .text
        .globl  gemm_f32
        .supervisor
        .align  8
gemm_f32:
        # $m1 half a group of coefficients, $m2 block after the one being loaded, $m3 begin, $m4 halves left less one.
        ld32    $m1, $m0, $m15, 1
        setzi   $m2, .Lsetup
        setzi   $m3, .Lbegin
        setzi   $m4, 2*CG-1
        setzi   $m5, .Lmiddle
        setzi   $m6, .Llast
        setzi   $m7, W_PANEL
        setzi   $m9, .Lfinish
        runall  $m2, $m0, 0
        put     $CCCSLOAD, $m1
        sync    2
.Lhalf:
        add     $m2, $m1, $m7
        # From one half to the next: 8 channels of 32 bytes.
        add     $m1, $m1, 256
        load_coefficients
        runall  $m3, $m0, 0
        .if     KB > 1
        put     $CCCSLOAD, $m2
        .else
        put     $CCCSLOAD, $m1
        .endif
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
        runall  $m9, $m0, 0
        sync    2
        brnzdec $m4, .Lhalf
        br      $m10

        .worker
        .if     ROWS <= 12

        # ---- ring: rows a = min(w, ROWS - 1) and b = min(w + 6, ROWS - 1).
        # $m4 x stride from row a to row b, $m5 from row b to row a of the next panel, $m6 x pointer, $m8 its start,
        # $m7 and $m9 the two rows of the half's result, $m10 to the next half, $m11 that and the one after.

        .macro  ring result, partial, phase, stride
        { ld64step $a0:1, $m15, $m6+=, \stride
          f16v4sisoamp \result, $a0:1, \partial, \phase }
        .endm
        .macro  ring_feed stride
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P0, 1
        ring    $a4:5, $a4:5, TAMP_F16V4_E4_P1, 1
        ring    $a4:5, $a4:5, TAMP_F16V4_E4_P2, \stride
        ring    $a4:5, $a4:5, TAMP_F16V4_E4_P3, 1
        { nop
          f16v4sisoamp $a6:7, $azeros, $a4:5, TAMP_F16V4_E4_P3 }
        .endm
        # Multiply row b; what comes back is the result of row a.
        .macro  ring_last
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P0, 1
        ring    $a6:7, $azeros, TAMP_F16V4_E4_P1, 1
        { nop
          f32v4tof16 $a2:3, $a4:7 }
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P2, 1
        { st64    $a2:3, $m7, $m15, 0
          f16v4sisoamp $a6:7, $a0:1, $azeros, TAMP_F16V4_E4_P3 }
        f32v4tof16 $a2:3, $a4:7
        st64    $a2:3, $m7, $m15, 1
        .endm

        .align  8
.Lsetup:
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
        setzi   $m10, 16
        setzi   $m11, OUT_PANEL
        exitz   $m15
        .align  8
.Lbegin:
        setzi   $a4, 8
        uput    $FP_CLR, $a4
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P0, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P1, 1
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P2, $m4
        ring    $a4:5, $azeros, TAMP_F16V4_E4_P3, 1
        .if     KB > 1
        ring_feed $m5
        .else
        ring_last
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
        ring_last
        exitz   $m15
        .align  8
.Lfinish:
        { nop
          f16v4sisoamp $a0:1, $azeros, $azeros, TAMP_F16V4_E4_P0 }
        { nop
          f16v4sisoamp $a2:3, $azeros, $azeros, TAMP_F16V4_E4_P1 }
        { nop
          f16v4sisoamp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P2 }
        { add     $m7, $m7, $m10
          f16v4sisoamp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P3 }
        { nop
          f32v4tof16 $a0:1, $a0:3 }
        { st64    $a0:1, $m9, $m15, 0
          f32v4tof16 $a4:5, $a4:7 }
        st64    $a4:5, $m9, $m15, 1
        add     $m9, $m9, $m10
        sub     $m10, $m11, $m10
        exitz   $m15

        .else

        # ---- stream: worker w takes consecutive rows, the first EXTRA workers one more.
        # $m0 rows of this worker in out, $m1 its number of rows, $m2:3 addresses (x, partial, result), $m4 strides, $m5 rows of the
        # inner loop, $m6 x word 1 of the block, $m7 rows of this worker in partials, $m8 in x, $m9 bytes to the next half of out,
        # $m10 and $m11 partial word 5 and the address of word 4n - 6, for packing the pointers anew.
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
        .equ    PACK, 1
        .equ    X_LAST, 0
        .else
        .equ    PACK, 0
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
          f16v4sisoamp \result, $a0:1, $a2:3, \phase }
        .endm
        .macro  enter result, phase, codes
        { ld2xst64pace $a0:3, \result, $m2:3+=, $m4, \codes
          f16v4sisoamp \result, $a0:1, $azeros, \phase }
        .endm
        .macro  leave result, phase, codes
        { ldst64pace $a0:1, \result, $m2:3+=, $m4, \codes
          f16v4sisoamp \result, $a0:1, $a2:3, \phase }
        .endm
        .macro  start result, phase, codes
        { ldst64pace $a0:1, \result, $m2:3+=, $m4, \codes
          f16v4sisoamp \result, $a0:1, $azeros, \phase }
        .endm
        .macro  fill result, phase
        { ld64step $a0:1, $m15, $m6+=, 1
          f16v4sisoamp \result, $a0:1, $azeros, \phase }
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
        .macro  pack_pointers
        .if     PACK == 1
        add     $m6, $m6, X_PANEL-8
        ld64step $a0:1, $m15, $m6+=, 1
        tapack  $m2:3, $m6, $m10, $m11
        .align  8
        .endif
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
.Lsetup:
        get     $m0, $WSR
        and     $m0, $m0, 7
        mul     $m1, $m0, N
        min     $m2, $m0, EXTRA
        add     $m3, $m1, $m2
        cmpslt  $m2, $m0, EXTRA
        ld32    $m8, $m13, $m15, 0
        ld32    $m0, $m13, $m15, 2
        ld32    $m7, $m13, $m15, 3
        shl     $m3, $m3, 5
        add     $m8, $m8, $m3
        add     $m7, $m7, $m3
        add     $m0, $m0, $m3
        add     $m1, $m2, N
        add     $m5, $m2, N-4
        shl     $m3, $m2, 2
        sub     $m4, 1-4*N, $m3
        and     $m4, $m4, 1023
        sub     $m3, NEXT_PANEL, $m3
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
        add     $m11, $m7, 32*N_MAX-48
        .else
        shl     $m11, $m2, 5
        add     $m11, $m11, 32*N-48
        add     $m11, $m11, $m7
        .endif
        add     $m10, $m7, 40
        setzi   $m9, 16
        exitz   $m15
        .align  8
.Lbegin:
        setzi   $a4, 8
        uput    $FP_CLR, $a4
        mov     $m6, $m8
        ld64step $a0:1, $m15, $m6+=, 1
        .align  8
        fill    $a4:5, TAMP_F16V4_E4_P0
        fill    $a6:7, TAMP_F16V4_E4_P1
        fill    $a4:5, TAMP_F16V4_E4_P2
        fill    $a6:7, TAMP_F16V4_E4_P3
        fill    $a4:5, TAMP_F16V4_E4_P0
        fill    $a6:7, TAMP_F16V4_E4_P1
        add     $m6, $m8, 56
        tapack  $m2:3, $m6, $m7, $m7
        .if     PACK == 1
        add     $m6, $m8, 8
        .endif
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
        row_update 0, 0, X_LAST, 0
        .else
        start   $a6:7, TAMP_F16V4_E4_P3, 0
        row_start 0
        .endif
        exitz   $m15
        .align  8
.Lmiddle:
        pack_pointers
        head_update
        update  $a4:5, TAMP_F16V4_E4_P2, 4+3*REPEAT
        update  $a6:7, TAMP_F16V4_E4_P3, 0
        row_update 0, 0, X_LAST, 0
        exitz   $m15
        .align  8
.Llast:
        pack_pointers
        head_update
        update  $a4:5, TAMP_F16V4_E4_P2, 3*REPEAT
        leave   $a6:7, TAMP_F16V4_E4_P3, 0
        row_start 0
        exitz   $m15
        .align  8
.Lfinish:
        { st64pace $a4:5, $m2:3+=, $m4, 0
          f16v4sisoamp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P0 }
        { st64pace $a6:7, $m2:3+=, $m4, 3*REPEAT
          f16v4sisoamp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P1 }
        { st64pace $a4:5, $m2:3+=, $m4, 0
          f16v4sisoamp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P2 }
        { st64pace $a6:7, $m2:3+=, $m4, 0
          f16v4sisoamp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P3 }
        st64pace $a4:5, $m2:3+=, $m4, 0
        st64pace $a6:7, $m2:3+=, $m4, 0
        # Round: 8 sums of a row become 16 bytes of out.
        mov     $m6, $m7
        mov     $m2, $m0
        .align  8
        { rpt     $m1, 3
          fnop }
        { ld128step $a0:3, $m15, $m6+=, 1
          fnop }
        { ld128step $a4:7, $m15, $m6+=, 1
          f32v4tof16 $a0:1, $a0:3 }
        { st64step $a0:1, $m15, $m2+=, 1
          f32v4tof16 $a4:5, $a4:7 }
        { st64step $a4:5, $m15, $m2+=, 3
          fnop }
        add     $m0, $m0, $m9
        setzi   $m3, OUT_PANEL
        sub     $m9, $m3, $m9
        exitz   $m15
        .endif
