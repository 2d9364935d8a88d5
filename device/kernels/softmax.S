# Softmax of the rows of s, in place, without the division:
#
#       p(m, n) = exp(SCALE * (s(m, n) - max of row m))     for the first 16*(KG-1) + TAIL columns, 0 for the others
#       stats[m] = (SCALE * max of row m, sum of the rounded p(m, n))                                 both f32
#
# s is KG panels of ROWS rows, S_PANEL bytes apart. The columns after the tail are as if they were -65504: they do not enter the maximum,
# and their exponentials are zero. Differences, scaled differences and exponentials are f16, the sum is f32. SCALE is the bits of an f32;
# 1.0 leaves the multiplication out.
#
# Arguments: 0 s, 1 stats. Worker w takes the rows w, w + 6, ...
#
# Measured, complete calls, clocks: 92 rows of 92 keys (KG=6, TAIL=12): 16,676 with SCALE = 1.0, 18,884 with another scale; 96 keys: 17,348 and 19,652.

        .equ    FULL_WORDS, TAIL/4
        .equ    PARTIAL_LANES, TAIL-4*FULL_WORDS
        # Lanes that count in the words of the last panel, and whether a word follows.
        .equ    LANES_0, min(TAIL,4)
        .equ    LANES_1, max(min(TAIL-4,4),0)
        .equ    LANES_2, max(min(TAIL-8,4),0)
        .equ    LANES_3, max(min(TAIL-12,4),0)
        .equ    MORE_1, min(LANES_1,1)
        .equ    MORE_2, min(LANES_2,1)
        .equ    MORE_3, min(LANES_3,1)
        .if     SCALE == 0x3f800000
        .equ    SCALED, 0
        .else
        .equ    SCALED, 1
        .endif
        .equ    ROW_COUNT, ROWS/6
        .equ    ROW_EXTRA, ROWS-6*ROW_COUNT

        .text
        .globl  softmax
        .supervisor
        .align  8
softmax:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        # Load: $m2 pointer. `step` leads to the next word, in words.
        .macro  maximum data, other, step
        { ld64step \data, $m15, $m2+=, \step
          f16v4max $a4:5, $a4:5, \other }
        .endm

        # The scaled difference of the word in $a0:1.
        .macro  difference
        { nop
          f16v4add $a0:1, $a2:BL, $a0:1 }
        .if     SCALED == 1
        { nop
          f16v4mul $a0:1, $a2:BU, $a0:1 }
        .endif
        .endm

        # Two words of a full panel: $m2 load pointer, one word ahead, $m3 store pointer.
        .macro  two_words first_load_step, store_step
        difference
        { nop
          f16v2exp $a4, $a0 }
        { ld64step $a0:1, $m15, $m2+=, \first_load_step
          f16v2exp $a5, $a1 }
        difference
        { st64step $a4:5, $m15, $m3+=, 1
          f16v2exp $a6, $a0 }
        { ld64step $a0:1, $m15, $m2+=, 1
          f16v2exp $a7, $a1 }
        { st64step $a6:7, $m15, $m3+=, \store_step
          f16v8acc $a4:7 }
        .endm

        # One word of the last panel, loaded in $a0:1. `lanes`: how many of its four count. `load_next`: a word follows, load it.
        # `store_before`: the word before waits in $a6:7.
        .macro  last_word low, high, lanes, load_next, store_before
        .if     \store_before == 1
        { st64step $a6:7, $m15, $m3+=, 1
          f16v4add $a0:1, $a2:BL, $a0:1 }
        .else
        { nop
          f16v4add $a0:1, $a2:BL, $a0:1 }
        .endif
        .if     SCALED == 1
        { nop
          f16v4mul $a0:1, $a2:BU, $a0:1 }
        .endif
        { nop
          f16v2exp \low, $a0 }
        .if     \lanes > 2
        .if     \load_next == 1
        { ld64step $a0:1, $m15, $m2+=, 1
          f16v2exp \high, $a1 }
        .else
        { nop
          f16v2exp \high, $a1 }
        .endif
        .else
        { nop
          zero    \high }
        .endif
        .if     \lanes == 1
        { nop
          sort4x16lo \low, \low, $azero }
        .endif
        .if     \lanes == 3
        { nop
          sort4x16lo \high, \high, $azero }
        .endif
        .endm

        # Two sums, and a word of zeros if asked for.
        .macro  drain sums, store_zeros
        .if     \store_zeros == 1
        { st64step $azeros, $m15, $m3+=, 1
          f32v2gina \sums, $azeros, 0 }
        .else
        { nop
          f32v2gina \sums, $azeros, 0 }
        .endif
        .endm

        .worker
        .align  8
.Lworker:
        # $m0 row of s, $m1 statistics of the row, $m2 load, $m3 store, $m4 stride from panel to panel, $m5 rows left less
        # one, $m6 full panels.
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
        setzi   $m4, S_PANEL/8-3
        setzi   $m6, KG-1
        # The scale as f32 and, in both halves, as f16: words 0 and 1 of the scratch area.
        ldconst $a0, SCALE
        st32    $a0, $m12, $m15, 0
        f32tof16 $a1, $a0
        st32    $a1, $m12, $m15, 1
        setzi   $a1, 8
        uput    $FP_CLR, $a1
        mov     $m2, $m0
.Lrow:
        # The maximum of four columns of lanes.
        .if     FULL_WORDS > 1
        # The words 0 and 1 are loaded ahead: the loop's second bundle loads word 3 and goes on to the next panel.
        ld64step $a4:5, $m15, $m2+=, 1
        ld64step $a2:3, $m15, $m2+=, 1
        .if     KG > 1
        .align  8
        { rpt     $m6, 3
          fnop }
        maximum $a0:1, $a2:3, 1
        maximum $a2:3, $a0:1, $m4
        maximum $a0:1, $a2:3, 1
        maximum $a2:3, $a0:1, 1
        .endif
        .align  8
        .if     FULL_WORDS > 2
        maximum $a0:1, $a2:3, 1
        .endif
        .if     FULL_WORDS > 3
        maximum $a2:3, $a0:1, 1
        .endif
        .if     FULL_WORDS == 3
        f16v4max $a4:5, $a4:5, $a0:1
        .else
        f16v4max $a4:5, $a4:5, $a2:3
        .endif
        .else
        .if     TAIL < 4
        .if     KG > 1
        ld64    $a2:3, $m0, $m15, 0
        ld64    $a4:5, $m0, $m15, 0
        .endif
        .else
        ld64    $a2:3, $m0, $m15, 0
        ld64    $a4:5, $m0, $m15, 0
        .endif
        .if     KG > 1
        .align  8
        { rpt     $m6, 3
          fnop }
        maximum $a0:1, $a2:3, 1
        maximum $a2:3, $a0:1, 1
        maximum $a0:1, $a2:3, 1
        maximum $a2:3, $a0:1, $m4
        .endif
        .if     FULL_WORDS > 0
        .align  8
        maximum $a0:1, $a2:3, 1
        f16v4max $a4:5, $a4:5, $a0:1
        .else
        .if     KG > 1
        f16v4max $a4:5, $a4:5, $a2:3
        .endif
        .endif
        .endif
        # Lanes of a last word that is used in part; the others repeat a used one.
        .if     PARTIAL_LANES > 0
        ld64    $a0:1, $m2, $m15, 0
        .if     PARTIAL_LANES == 1
        sort4x16lo $a0, $a0, $a0
        mov     $a1, $a0
        .endif
        .if     PARTIAL_LANES == 2
        mov     $a1, $a0
        .endif
        .if     PARTIAL_LANES == 3
        sort4x16lo $a1, $a1, $a1
        .endif
        .if     KG == 1
        .if     FULL_WORDS == 0
        mov     $a4:5, $a0:1
        .endif
        .endif
        f16v4max $a4:5, $a4:5, $a0:1
        .endif
        # $a2 = (-maximum, scale); the scaled maximum goes to the statistics.
        .align  8
        { mov     $m3, $m0
          f16v4maxc $a4, $a4:5 }
        { ld32    $a6, $m12, $m15, 0
          f16v2maxc $a4, $a4 }
        { ld32    $a3, $m12, $m15, 1
          f16tof32 $a5, $a4 }
        { mov     $m2, $m0
          f32mul  $a5, $a5, $a6 }
        { st32step $a5, $m15, $m1+=, 1
          f16v2sub $a4, $azero, $a4 }
        { ld64step $a0:1, $m15, $m2+=, 1
          sort4x16lo $a2, $a4, $a3 }
        .if     KG > 1
        { rpt     $m6, 13+4*SCALED
          fnop }
        two_words 1, 1
        two_words $m4, $m4
        .endif
        # The last panel; its first word is loaded.
        last_word $a4, $a5, LANES_0, MORE_1, 0
        .if     TAIL > 4
        { st64step $a4:5, $m15, $m3+=, 1
          fnop }
        last_word $a6, $a7, LANES_1, MORE_2, 0
        { nop
          f16v8acc $a4:7 }
        .else
        { st64step $a4:5, $m15, $m3+=, 1
          f16v4acc $a4:5 }
        { nop
          zero    $a6:7 }
        .endif
        .if     TAIL > 8
        last_word $a4, $a5, LANES_2, MORE_3, 1
        .if     TAIL > 12
        { st64step $a4:5, $m15, $m3+=, 1
          fnop }
        last_word $a6, $a7, LANES_3, 0, 0
        { st64step $a6:7, $m15, $m3+=, 1
          f16v8acc $a4:7 }
        .else
        { st64step $a4:5, $m15, $m3+=, 1
          f16v4acc $a4:5 }
        .endif
        .else
        { st64step $a6:7, $m15, $m3+=, 1
          fnop }
        .endif
        # The eight sums, and zeros for the next row; zeros in words without columns.
        { add     $m0, $m0, 192
          f32v2gina $a0:1, $azeros, 0 }
        drain   $a2:3, 1-MORE_2
        drain   $a4:5, 1-MORE_3
        { mov     $m2, $m0
          f32v2gina $a6:7, $azeros, 0 }
        { nop
          f32v2add $a0:1, $a0:1, $a2:3 }
        { nop
          f32v2add $a4:5, $a4:5, $a6:7 }
        { nop
          f32v2add $a0:1, $a0:1, $a4:5 }
        { nop
          f32add  $a0, $a0, $a1 }
        st32step $a0, $m15, $m1+=, 11
        brnzdec $m5, .Lrow
.Lnone:
        exitz   $m15
