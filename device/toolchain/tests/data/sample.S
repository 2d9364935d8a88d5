# A source with everything the assembler reads, for the tests of this crate.
        .equ    COUNT, ROWS/6       // constants
        .set    STEP, 0
        EXTRA = ROWS-6*COUNT
        .equ    ONE, 1.0h

        .section .text, "ax", @progbits
        .type   sample, @function
        .globl  sample, table
        .supervisor
        .align  8
sample: setzi   $m1, .Lworker; runall $m1, $m0, 0
        sync    2
1:      brnzdec $m2, 1b
        bri     1f
        nop
1:      call    $m10, elsewhere+4
        br      $lr
        /* argument
           block */
table:  .long   sample, .Lend-.Lworker, 0xffffffff
        .half   0x1234, ONE
        .byte   1, 2, 3, -1
        .zero   4
        .long   elsewhere@abs@21

        .macro  step value, weight=0, stride=1
        .ifc    \value, $a0:1
        { ld64step \value, $mzero, $m2+=, \stride
          f16v4add $a2:3, \value, $a2:3 }
        .else
        { ld64step \value, $m15, $m2+=, \stride ; f16v4mul $a2:3, $a4:BL, \value }
        .endif
        .endm
        .macro  skip
        brz     $m0, .Lskip\@
        mov     $m1, $m0
.Lskip\@:
        .endm

        .worker
        .align  8
.Lworker:
        get     $m0, $WSR
        and     $m0, $m0, 7
        ld32    $m2, $mvertex_base, 0
        ldconst $m3, 0x12345678
        ldconst $a4, -1.5h
        uput    $FP_CLR, $a4
        sub     $m3, $m3, 1
        adds    $m3, $m3, -1
        addz    $m3, $m3, 0x7fff
        skip
        skip
        .if     EXTRA > 0
        cmpslt  $m4, $m0, EXTRA
        .elseif COUNT > 1
        setzi   $m4, 1
        .else
        zero    $m4
        .endif
        .align  8
        { rpt   $m4, (.Lend-.Lbody)/8-1
          zero  $a0:1 }
.Lbody: step    $a0:1
        step    $a6:7, stride=-2
        .rept   2
        .set    STEP, STEP+1
        { st32  $a0, $m12, $m15, STEP ; fnop }
        .endr
.Lend:  exitz   $mzero
