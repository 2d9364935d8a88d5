# Transposes panels: dst(c, r) = src(r, c), src of ROWS rows and 16*CG columns, dst of 16*CG rows and ROWS columns.
#
# Arguments: 0 src, CG panels SRC_PANEL bytes apart, 1 dst, ROWS/16 panels DST_PANEL bytes apart, in different conflict units.
# A strip is four rows of a panel, 16 columns: four blocks of 4 x 4. It becomes one 64-bit word of 16 rows of dst. The strips of all panels,
# rows first, go to the workers in turn: worker w takes the strips w, w + 6, ...
#
# The transposer returns the columns 0 and 1 of a block at once and 2 and 3 while the next block enters (isa-notes 10.5), so
# five bundles move a block: four loads, four stores, four calls.

        .equ    STRIPS, ROWS/4
        .equ    COUNT, STRIPS*CG/6
        .equ    EXTRA, STRIPS*CG-6*COUNT

        .text
        .globl  transpose
        .supervisor
        .align  8
transpose:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        .worker
        .align  8
.Lworker:
        # $m0 strip of the panel, $m1 src panel, $m2 dst rows of the panel, $m3 strips left less one, $m5 strides (1: next row,
        # 2: row 3 of a block to row 1 of the next), $m6:7 packed pointers, $m8 row 0.
        get     $m0, $WSR
        and     $m0, $m0, 7
        cmpslt  $m3, $m0, EXTRA
        add     $m3, $m3, COUNT-1
        brneg   $m3, .Lnone
        ld32    $m1, $m13, $m15, 0
        ld32    $m2, $m13, $m15, 1
        setzi   $m5, 4|((-7&1023)<<10)
        setzi   $m11, SRC_PANEL
.Lstrip:
        # Strips beyond the panel belong to the next one.
        cmpult  $m4, $m0, STRIPS
        brnz    $m4, .Lfound
        add     $m0, $m0, -STRIPS
        add     $m1, $m1, $m11
        add     $m2, $m2, 512
        bri     .Lstrip
.Lfound:
        shl     $m8, $m0, 7
        add     $m8, $m8, $m1
        # dst panel strip/4, word strip%4.
        shr     $m9, $m0, 2
        setzi   $m4, DST_PANEL
        mul     $m9, $m9, $m4
        and     $m4, $m0, 3
        shl     $m4, $m4, 3
        add     $m9, $m9, $m4
        add     $m9, $m9, $m2
        ld64    $a2:3, $m8, $m15, 4
        ld64    $a4:5, $m8, $m15, 8
        ld64    $a6:7, $m8, $m15, 12
        ld64step $a0:1, $m15, $m8+=, 1
        # The packed load pointer starts at row 1 of the second block.
        add     $m4, $m8, 32
        tapack  $m6:7, $m4, $m4, $m9
        # The first block has no columns of a block before to store.
        add     $m10, $m8, 0
        .align  8
        { ld64step $a0:1, $m15, $m8+=, 1
          f16v4istacc $a2:3, $a0:1, $a2:3, TISTACC_P0 }
        { ld64    $a2:3, $m10, $m15, 4
          f16v4istacc $a4:5, $a4:5, $a6:7, TISTACC_P1 }
        { ld64    $a4:5, $m10, $m15, 8
          f16v4stacc $a6:7, TSTACC_P0 }
        { st64pace $a6:7, $m6:7+=, $m5, 1
          f16v4stacc $a6:7, TSTACC_P1 }
        { st64pace $a6:7, $m6:7+=, $m5, 1
          fnop }
        { ld64    $a6:7, $m10, $m15, 12
          fnop }
        # Blocks 1 and 2 load the rows 1 to 3 of the blocks 2 and 3.
        add     $m4, $m4, 8
        add     $m9, $m9, 64
        tapack  $m6:7, $m4, $m4, $m9
        .align  8
        { rpt     2, 4
          fnop }
        { ld64step $a0:1, $m15, $m8+=, 1
          f16v4istacc $a2:3, $a0:1, $a2:3, TISTACC_P0 }
        { ldst64pace $a2:3, $a2:3, $m6:7+=, $m5, 5
          f16v4istacc $a4:5, $a4:5, $a6:7, TISTACC_P1 }
        { ldst64pace $a4:5, $a4:5, $m6:7+=, $m5, 5
          f16v4stacc $a6:7, TSTACC_P0 }
        { st64pace $a6:7, $m6:7+=, $m5, 1
          f16v4stacc $a6:7, TSTACC_P1 }
        { ldst64pace $a6:7, $a6:7, $m6:7+=, $m5, 6
          fnop }
        # The last block, and its columns 2 and 3.
        { nop
          f16v4istacc $a2:3, $a0:1, $a2:3, TISTACC_P0 }
        { st64pace $a2:3, $m6:7+=, $m5, 1
          f16v4istacc $a4:5, $a4:5, $a6:7, TISTACC_P1 }
        { st64pace $a4:5, $m6:7+=, $m5, 1
          f16v4stacc $a6:7, TSTACC_P0 }
        { st64pace $a6:7, $m6:7+=, $m5, 1
          f16v4stacc $a6:7, TSTACC_P1 }
        { st64pace $a6:7, $m6:7+=, $m5, 1
          f16v4istacc $a2:3, $azeros, $azeros, TISTACC_P0 }
        { st64pace $a2:3, $m6:7+=, $m5, 1
          f16v4istacc $a4:5, $azeros, $azeros, TISTACC_P1 }
        st64pace $a4:5, $m6:7+=, $m5, 1
        add     $m0, $m0, 6
        brnzdec $m3, .Lstrip
.Lnone:
        exitz   $m15
