# Copies G runs of BYTES bytes, SRC_PANEL apart, to runs DST_PANEL apart; source and target lie in different conflict units.
#
# Arguments: 0 src, 1 dst.
# Three ways, chosen when the variant is assembled:
#   one run      both sides are dense, so the G runs are one
#   by words     worker w moves the words w, w + 6, ... of every run; pointers jump from run to run by
#                their stride codes when the distances fit into 10 bits, else they are packed anew
#   by runs      worker w moves the runs w, w + 6, ... when the runs are short
#
# Measured, complete calls: 5 runs of 2,944 bytes with gaps 2,090 clocks, dense 1,972; 5 runs of 384 bytes 485.

        .if     BYTES == SRC_PANEL && BYTES == DST_PANEL
        .equ    RUNS, 1
        .equ    RUN_WORDS, G*BYTES/8
        .else
        .equ    RUNS, G
        .equ    RUN_WORDS, BYTES/8
        .endif

        # Slots of the two ways of sharing the work.
        .equ    WORD_COUNT, RUN_WORDS/6
        .equ    WORD_EXTRA, RUN_WORDS-6*WORD_COUNT
        .equ    RUN_COUNT, RUNS/6
        .equ    RUN_EXTRA, RUNS-6*RUN_COUNT
        .equ    SLOTS_BY_WORDS, RUNS*(WORD_COUNT+3)
        .equ    SLOTS_BY_RUNS, (RUN_COUNT+min(RUN_EXTRA,1))*(RUN_WORDS+6)

        # Jumps from the last word of a run to the first of the next, in words, for the shorter share.
        .equ    SRC_JUMP, SRC_PANEL/8-6*(WORD_COUNT-1)
        .equ    DST_JUMP, DST_PANEL/8-6*(WORD_COUNT-1)

        .if     RUNS == 1
        .equ    WAY, 0
        .else
        .if     SLOTS_BY_RUNS < SLOTS_BY_WORDS
        .equ    WAY, 2
        .else
        .if     WORD_COUNT < 2 || max(SRC_JUMP,DST_JUMP) > 511 || min(SRC_JUMP,DST_JUMP) < -506
        .equ    WAY, 1
        .else
        .equ    WAY, 0
        .endif
        .endif
        .endif

        .text
        .globl  copy_panels
        .supervisor
        .align  8
copy_panels:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        .worker
        .align  8
.Lworker:
        get     $m0, $WSR
        and     $m0, $m0, 7
        ld32    $m1, $m13, $m15, 0
        ld32    $m2, $m13, $m15, 1

        .if     WAY < 2
        # By words: $m3 words of a run, $m8 runs, both less one.
        cmpslt  $m4, $m0, WORD_EXTRA
        add     $m3, $m4, WORD_COUNT-1
        shl     $m0, $m0, 3
        add     $m1, $m1, $m0
        add     $m2, $m2, $m0
        .else
        # By runs: $m3 words of a run, $m8 runs of this worker, both less one.
        setzi   $m3, RUN_WORDS-1
        cmpslt  $m4, $m0, RUN_EXTRA
        add     $m8, $m4, RUN_COUNT-1
        brneg   $m8, .Lnone
        setzi   $m4, SRC_PANEL
        mul     $m4, $m0, $m4
        add     $m1, $m1, $m4
        setzi   $m4, DST_PANEL
        mul     $m4, $m0, $m4
        add     $m2, $m2, $m4
        .endif

        .if     WAY == 0
        .if     RUNS > 1
        # Strides: 6 words, and the two jumps; a longer share jumps six words less.
        mul     $m4, $m4, 6
        sub     $m5, SRC_JUMP, $m4
        and     $m5, $m5, 1023
        shl     $m5, $m5, 10
        sub     $m9, DST_JUMP, $m4
        and     $m9, $m9, 1023
        shl     $m9, $m9, 20
        or      $m5, $m5, $m9
        or      $m5, $m5, 6
        .else
        brneg   $m3, .Lnone
        setzi   $m5, 6
        .endif
        ld64step $a0:1, $m15, $m1+=, 6
        tapack  $m6:7, $m1, $m1, $m2
        .if     RUNS > 1
        setzi   $m8, RUNS-2
        add     $m9, $m3, -1
.Lrun:
        # Load n + 1 stands beside store n: the load pointer jumps one bundle earlier.
        .align  8
        { rpt     $m9, 0
          fnop }
        { ldst64pace $a0:1, $a0:1, $m6:7+=, $m5, 5
          fnop }
        { ldst64pace $a0:1, $a0:1, $m6:7+=, $m5, 6
          fnop }
        { ldst64pace $a0:1, $a0:1, $m6:7+=, $m5, 13
          fnop }
        brnzdec $m8, .Lrun
        .endif
        .align  8
        { rpt     $m3, 0
          fnop }
        { ldst64pace $a0:1, $a0:1, $m6:7+=, $m5, 5
          fnop }
        st64pace $a0:1, $m6:7+=, $m5, 1
        .else

        .if     WAY == 1
        brneg   $m3, .Lnone
        setzi   $m8, RUNS-1
        setzi   $m5, 6
        setzi   $m10, SRC_PANEL
        setzi   $m11, DST_PANEL
        .else
        setzi   $m5, 1
        setzi   $m10, 6*SRC_PANEL
        setzi   $m11, 6*DST_PANEL
        .endif
.Lagain:
        ld64    $a0:1, $m1, $m15, 0
        shl     $m4, $m5, 3
        add     $m4, $m4, $m1
        tapack  $m6:7, $m4, $m4, $m2
        .align  8
        { rpt     $m3, 0
          fnop }
        { ldst64pace $a0:1, $a0:1, $m6:7+=, $m5, 5
          fnop }
        st64pace $a0:1, $m6:7+=, $m5, 1
        add     $m1, $m1, $m10
        add     $m2, $m2, $m11
        brnzdec $m8, .Lagain
        .endif
.Lnone:
        exitz   $m15
