# Adds PARTS dense arrays of f16, BYTES bytes each, one after the other in `parts`: sums in f32, rounded once to f16.
#
# Arguments: 0 parts, 1 out. Worker w takes the pairs of 64-bit words w, w + 6, ...; an odd last word is left to worker 5, which
# never has the longer share.
#
# Up to 16 parts are written out: the sums of a pair leave the accumulators beside the first loads of the next one. Parts enter from
# $a0:3 and $a4:7 in turn, and as the sums leave through $a4:5, part 1 begins with its second word. 2*PARTS + 3 slots a pair.
#
# Measured, a complete call: 4 parts of 1,024 bytes 886 clocks, of 23,552 bytes 16,394.

        .equ    PAIRS, BYTES/16
        .equ    PAIR_COUNT, PAIRS/6
        .equ    PAIR_EXTRA, PAIRS-6*PAIR_COUNT
        .equ    ODD, BYTES/8-2*PAIRS
        .if     PARTS > 1 && PARTS <= 16
        .equ    WRITTEN_OUT, 1
        .else
        .equ    WRITTEN_OUT, 0
        .endif
        .equ    LAST_IN_HIGH, 1-(PARTS&1)

        .text
        .globl  reduce
        .supervisor
        .align  8
reduce:
        setzi   $m1, .Lworker
        runall  $m1, $m0, 0
        sync    2
        br      $m10

        # Two sums each into $a4, then $a5.
        .macro  drain instruction, register
        { \instruction
          f16v2gina \register, $azero, 0 }
        .endm
        .macro  add_last instruction
        .if     LAST_IN_HIGH == 1
        { \instruction
          f16v8acc $a4:7 }
        .else
        { \instruction
          f16v8acc $a0:3 }
        .endif
        .endm
        # The next part is loaded while the one before is added; `stride` leads to the part after.
        .macro  even_part stride
        { ld64step $a0:1, $m15, $m2+=, 1
          f16v8acc $a4:7 }
        { ld64step $a2:3, $m15, $m2+=, \stride
          fnop }
        .endm
        .macro  odd_part stride
        { ld64step $a6:7, $m15, $m2+=, -1
          f16v8acc $a0:3 }
        { ld64step $a4:5, $m15, $m2+=, \stride
          fnop }
        .endm
        # Parts 1 (its second word is loaded) to the last, whose stride leads to the next pair.
        .macro  other_parts
        .if     PARTS == 2
        { ld64step $a4:5, $m15, $m2+=, $m6
          fnop }
        .else
        { ld64step $a4:5, $m15, $m2+=, $m4
          fnop }
        .rept   (PARTS-3)/2
        even_part $m4
        odd_part $m4
        .endr
        .if     LAST_IN_HIGH == 1
        even_part $m4
        odd_part $m6
        .else
        even_part $m6
        .endif
        .endif
        .endm

        .worker
        .align  8
.Lworker:
        # $m0 parts, $m1 out, $m2 load, $m3 store, $m4 from a part to the next, $m5 pairs left less one, $m6 from the last part to
        # the next pair or the number of parts, $m7 worker.
        get     $m7, $WSR
        and     $m7, $m7, 7
        ld32    $m0, $m13, $m15, 0
        ld32    $m1, $m13, $m15, 1
        setzi   $m4, BYTES/8
        setzi   $a4, 8
        uput    $FP_CLR, $a4
        cmpslt  $m5, $m7, PAIR_EXTRA
        add     $m5, $m5, PAIR_COUNT-1
        brneg   $m5, .Lodd
        shl     $m2, $m7, 4
        add     $m3, $m1, $m2
        add     $m2, $m0, $m2
        .if     WRITTEN_OUT == 1
        ldconst $m6, (PARTS-1)*BYTES/8
        sub     $m6, 11+LAST_IN_HIGH, $m6
        .align  8
        { ld64step $a0:1, $m15, $m2+=, 1
          fnop }
        { ld64step $a2:3, $m15, $m2+=, $m4
          fnop }
        { ld64step $a6:7, $m15, $m2+=, -1
          f16v8acc $a0:3 }
        other_parts
        { rpt     $m5, 2*PARTS+2
          fnop }
        add_last "ld64step $a0:1, $m15, $m2+=, 1"
        drain   "ld64step $a2:3, $m15, $m2+=, $m4", $a4
        drain   "ld64step $a6:7, $m15, $m2+=, -1", $a5
        drain   "st64step $a4:5, $m15, $m3+=, 1", $a4
        drain   nop, $a5
        { st64step $a4:5, $m15, $m3+=, 11
          f16v8acc $a0:3 }
        other_parts
        add_last nop
        drain   nop, $a4
        drain   nop, $a5
        drain   "st64step $a4:5, $m15, $m3+=, 1", $a4
        drain   nop, $a5
        st64step $a4:5, $m15, $m3+=, 11
        .else
        setzi   $m6, PARTS
        add     $m8, $m4, -1
        mov     $m9, $m2
.Lpair:
        .align  8
        { mov     $m2, $m9
          zero    $a0:1 }
        { add     $m9, $m9, 96
          zero    $a2:3 }
        { rpt     $m6, 1
          fnop }
        { ld64step $a0:1, $m15, $m2+=, 1
          f16v8acc $a0:3 }
        { ld64step $a2:3, $m15, $m2+=, $m8
          fnop }
        { nop
          f16v8acc $a0:3 }
        drain   nop, $a4
        drain   nop, $a5
        drain   "st64step $a4:5, $m15, $m3+=, 1", $a4
        drain   nop, $a5
        st64step $a4:5, $m15, $m3+=, 11
        brnzdec $m5, .Lpair
        .endif
.Lodd:
        .if     ODD == 1
        cmpult  $m2, $m7, 5
        brnz    $m2, .Lnone
        ldconst $m2, BYTES-8
        add     $m3, $m1, $m2
        add     $m2, $m0, $m2
        setzi   $m6, PARTS
        .align  8
        { nop
          zero    $a0:1 }
        { rpt     $m6, 0
          fnop }
        { ld64step $a0:1, $m15, $m2+=, $m4
          f16v4acc $a0:1 }
        { nop
          f16v4acc $a0:1 }
        drain   nop, $a4
        drain   nop, $a5
        st64step $a4:5, $m15, $m3+=, 1
        .endif
.Lnone:
        exitz   $m15
