# Stores zeros: `bytes` bytes at `dst`, a multiple of 8. Worker w takes the 64-bit words w, w + 6, ...
#
# Arguments: 0 dst, 1 bytes.
#
# Measured, complete calls: 8 KiB 1,144 clocks, nothing 120.

        .text
        .globl  clear
        .supervisor
        .align  8
clear:
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
        ld32    $m3, $m13, $m15, 1
        # Words of this worker: (words + 5 - w) / 6. The product with 43691 / 2^18 is the exact
        # quotient up to 2^17 words, more than a tile holds.
        shr     $m3, $m3, 3
        add     $m3, $m3, 5
        sub     $m3, $m3, $m0
        setzi   $m4, 43691
        mul     $m3, $m3, $m4
        shr     $m3, $m3, 18
        shl     $m0, $m0, 3
        add     $m1, $m1, $m0
        .align  8
        { rpt     $m3, 0
          fnop }
        { st64step $azeros, $m15, $m1+=, 6
          fnop }
        exitz   $m15
