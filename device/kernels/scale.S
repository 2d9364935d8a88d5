# Copies f16 elements times a number: dst(i) = SCALE * src(i), SCALE the bits of an f32, rounded to f16 first. BYTES is a multiple of 8;
# `src` and `dst` lie in different conflict units. Worker w takes the 64-bit words w, w + 6, ...: a paced load and store and a product a
# slot, so 8 bytes a clock.
#
# Arguments: 0 src, 1 dst. Each worker loads a word more than it stores, hence the readable tail.
#
# Measured, a complete call: 2,560 bytes 488 clocks.

        .equ    WORDS, BYTES/8
        .equ    WORD_COUNT, WORDS/6
        .equ    WORD_EXTRA, WORDS-6*WORD_COUNT

        .text
        .globl  scale
        .supervisor
        .align  8
scale:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        .worker
        .align  8
.Lworker:
        # $m1 load, $m2 store, $m3 the last store, $m8 words less one.
        get     $m0, $WSR
        and     $m0, $m0, 7
        ld32    $m1, $m13, $m15, 0
        ld32    $m2, $m13, $m15, 1
        cmpslt  $m8, $m0, WORD_EXTRA
        add     $m8, $m8, WORD_COUNT-1
        brneg   $m8, .Lnone
        shl     $m0, $m0, 3
        add     $m1, $m1, $m0
        add     $m2, $m2, $m0
        mul     $m3, $m8, 48
        add     $m3, $m3, $m2
        setzi   $m5, 6
        ldconst $a4, SCALE
        f32tof16 $a4, $a4
        ld64step $a0:1, $m15, $m1+=, 6
        .align  8
        { ld64step $a0:1, $m15, $m1+=, 6
          f16v4mul $a2:3, $a4:BL, $a0:1 }
        { tapack  $m6:7, $m1, $m1, $m2
          fnop }
        { rpt     $m8, 0
          fnop }
        { ldst64pace $a0:1, $a2:3, $m6:7+=, $m5, 5
          f16v4mul $a2:3, $a4:BL, $a0:1 }
        st64    $a2:3, $m3, $m15, 0
.Lnone:
        exitz   $m15
