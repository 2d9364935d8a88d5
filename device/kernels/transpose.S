# Transposes panels: dst(c, r) = src(r, c), src of ROWS rows and 16*CG columns, dst of 16*CG rows and ROWS columns.
#
# Arguments: 0 src, CG panels SRC_PANEL bytes apart, 1 dst, ROWS/16 panels DST_PANEL bytes apart, in different conflict units.
# 16 rows of a panel are 512 bytes, and so is their transpose. These squares, rows first, go to the workers in turn: worker w
# takes the squares w, w + 6, ...
#
# A square is four strips of four rows, a strip four blocks of 4 x 4. The transposer returns the columns 0 and 1 of a block at once
# and 2 and 3 while the next block enters (isa-notes 10.5), so five bundles move a block: four loads, four stores, four calls. The loads of a
# block stand beside the stores of the block before; after the last block of a square they read four rows too far, hence the
# readable tail. The stores of the first block (columns of nothing, zeros at first) go where the last strip stores later.
#
# Measured, complete calls: 96 x 96 elements 3,894 clocks, 16 x 80 elements 803.

        .equ    SQUARES, ROWS/16
        .equ    WHOLE, 6/SQUARES
        .equ    COUNT, SQUARES*CG/6
        .equ    EXTRA, SQUARES*CG-6*COUNT

        .text
        .globl  transpose
        .supervisor
        .align  8
transpose:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        # One block: enter the rows in $a0:7, store the columns 2 and 3 of the block before and 0 and 1 of this one, load the
        # next block. `row_0`: words from row 0 to the next one; `row_3`: code of the jump from row 3; the word after column 3 is
        # the next row (stride register $m5, code 5) or the next word of row 0 ($m4, code 9).
        .macro  block row_0, row_3, strides, codes
        { ld64step $a0:1, $m15, $m8+=, \row_0
          f16v4istacc $a2:3, $a0:1, $a2:3, TISTACC_P0 }
        { ldst64pace $a2:3, $a2:3, $m6:7+=, $m5, 5
          f16v4istacc $a4:5, $a4:5, $a6:7, TISTACC_P1 }
        { ldst64pace $a4:5, $a4:5, $m6:7+=, \strides, \codes
          f16v4stacc $a6:7, TSTACC_P0 }
        { st64pace $a6:7, $m6:7+=, $m5, 1
          f16v4stacc $a6:7, TSTACC_P1 }
        { ldst64pace $a6:7, $a6:7, $m6:7+=, $m5, \row_3
          fnop }
        .endm

        .worker
        .align  8
.Lworker:
        # $m0 square of the panel, $m1 src panel, $m2 dst rows of the panel, $m3 squares left less one, $m4 and $m5 strides in words (4
        # and -59; 4, -7 and 5), $m6:7 rows 1 to 3 and the result, $m8 row 0.
        get     $m0, $WSR
        and     $m0, $m0, 7
        cmpslt  $m3, $m0, EXTRA
        add     $m3, $m3, COUNT-1
        brneg   $m3, .Lnone
        ld32    $m1, $m13, $m15, 0
        ld32    $m2, $m13, $m15, 1
        setzi   $m4, 4|((-59&1023)<<10)
        setzi   $m5, 4|((-7&1023)<<10)
        setzi   $m6, 5
        shl     $m6, $m6, 20
        or      $m5, $m5, $m6
        setzi   $m10, DST_PANEL
        setzi   $m11, SRC_PANEL
        # The panel of the first square: w / SQUARES, exact for w <= 5.
        mul     $m8, $m0, 256/SQUARES+1
        shr     $m8, $m8, 8
        mul     $m9, $m8, SQUARES
        sub     $m0, $m0, $m9
        mul     $m9, $m8, $m11
        add     $m1, $m1, $m9
        shl     $m9, $m8, 9
        add     $m2, $m2, $m9
        f16v4istacc $a0:1, $azeros, $azeros, TISTACC_P0
        f16v4istacc $a0:1, $azeros, $azeros, TISTACC_P1
.Lsquare:
        shl     $m8, $m0, 9
        add     $m8, $m8, $m1
        mul     $m9, $m0, $m10
        add     $m9, $m9, $m2
        ld64    $a2:3, $m8, $m15, 4
        ld64    $a4:5, $m8, $m15, 8
        ld64    $a6:7, $m8, $m15, 12
        ld64step $a0:1, $m15, $m8+=, 1
        add     $m6, $m8, 32
        add     $m9, $m9, 440
        tapack  $m6:7, $m6, $m6, $m9
        .align  8
        { rpt     4, 19
          fnop }
        block   1, 6, $m4, 9
        block   1, 6, $m5, 5
        block   13, 7, $m5, 5
        block   1, 6, $m5, 5
        { nop
          f16v4istacc $a2:3, $azeros, $azeros, TISTACC_P0 }
        { st64pace $a2:3, $m6:7+=, $m5, 1
          f16v4istacc $a4:5, $azeros, $azeros, TISTACC_P1 }
        st64pace $a4:5, $m6:7+=, $m5, 1
        # Six squares on: whole panels, and the rest.
        add     $m0, $m0, 6-SQUARES*WHOLE
        .if     WHOLE > 0
        setzi   $m8, WHOLE*SRC_PANEL
        add     $m1, $m1, $m8
        add     $m2, $m2, 512*WHOLE
        .endif
        cmpult  $m8, $m0, SQUARES
        brnz    $m8, .Lsame_panel
        add     $m0, $m0, -SQUARES
        add     $m1, $m1, $m11
        add     $m2, $m2, 512
.Lsame_panel:
        brnzdec $m3, .Lsquare
.Lnone:
        exitz   $m15
