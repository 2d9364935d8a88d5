# What every tile starts with, and the routines its program calls. Placed at the entry address.
# Start of a program: machine.md d.7. Host window addresses: machine.md e.5.

        .section .text
        .supervisor
        .align 8
        .globl entry
entry:
        sync 3
        sync 2
        setzi $m0, NEUTRAL
        put $INCOMING_MUX, $m0
        put $INCOMING_BASE, $m15
        put $OUTGOING_BASE, $m15
        put $FP_ICTL, $m15
        setzi $m0, SCRATCH
        put $WORKER0_BASE, $m0
        add $m0, $m0, SCRATCH_BYTES
        put $WORKER1_BASE, $m0
        add $m0, $m0, SCRATCH_BYTES
        put $WORKER2_BASE, $m0
        add $m0, $m0, SCRATCH_BYTES
        put $WORKER3_BASE, $m0
        add $m0, $m0, SCRATCH_BYTES
        put $WORKER4_BASE, $m0
        add $m0, $m0, SCRATCH_BYTES
        put $WORKER5_BASE, $m0
        setzi $m1, COMPLETION
        st32 $m15, $m1, $m15, 0
        call $m10, join
        call $m10, greeting
        bri program

# Brings all six workers into the same state.
        .globl join
join:
        setzi $m0, trivial
        runall $m0, $m15, 0
        sync 2
        br $m10

# Copies a table to the start of the staging window. $m0: address of the count of words, the words behind it.
        .globl stage
stage:
        ld32 $m1, $m0, $m15, 0
        setzi $m2, STAGING
stage_word:
        add $m0, $m0, 4
        ld32 $m3, $m0, $m15, 0
        add $m1, $m1, -1
        st32 $m3, $m2, $m15, 0
        add $m2, $m2, 4
        brnz $m1, stage_word
        br $m10

# The row of a tile that takes no part in a phase.
        .globl idle
idle:
        br $m10

# All tiles have passed their last barrier.
        .globl finish
finish:
        setzi $m0, 1
        setzi $m1, COMPLETION
        st32 $m0, $m1, $m15, 0
rest:
        sans 255
        sync 1
        bri rest

        .worker
trivial:
        exitz $m15

        .supervisor
