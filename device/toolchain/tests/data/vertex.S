// A vertex in the manner of kernels written for the vendor's tools.
#ifdef __IPU__
#include "poplar/AvailableVTypes.h"
#include "poplar/StackSizeDefs.hpp"
#include "poplar/TileConstants.hpp"
#include <arch/gc_tile_defines.h>

#define FUNCTION(name) __runCodelet_##name
#define POINTER m0
#define WORKER m1
#define LOG2_ATOM 3

.equ PTR_OFFSET, 0
.equ SIZE_OFFSET, PTR_OFFSET + 1

#if __IPU_ARCH_VERSION__ >= 21 && defined(VECTOR_AVAIL_SCALED_PTR64)
#error "this layout is not written"
#endif

.macro LOAD_ARGUMENT register, index:req
    ld32 \register, $mvertex_base, $mzero, \index
.endm

DEF_STACK_USAGE 0 FUNCTION(scale)
.section .text.FUNCTION(scale), "ax", @progbits
.globl FUNCTION(scale)
.type FUNCTION(scale), @function
.supervisor
.align 4
FUNCTION(scale):
    setzi       $m2, .Lworker\
                // where the workers begin
    runall      $m2, $m0, 0
    sync        TEXCH_SYNCZONE_LOCAL
    br          $lr

.worker
.align 8
.Lworker:
    get         $WORKER, $WSR
    and         $WORKER, $WORKER, CSR_W_WSR__CTXTID_M1__MASK
    LOAD_ARGUMENT $POINTER PTR_OFFSET
    LOAD_ARGUMENT $m3, SIZE_OFFSET
    setzi       $a0, (1 << CSR_W_FP_CLR__ZAACC__SHIFT)
    uput        $FP_CLR, $a0
    shl         $m4, $WORKER, LOG2_ATOM
    cmpslt      $m5, $m4, CTXT_WORKERS << LOG2_ATOM
    brz         $m5, 2f
    .align 8
    { rpt $m3, (2f - 1f) / 8 - 1
      fnop }
1:
    { ld64step $a0:1, $mzero, $POINTER+=, CTXT_WORKERS
      f16v4add $a2:3, $a0:1, $a2:3 }
2:
    exitz       $mzero
.size FUNCTION(scale), . - FUNCTION(scale)
#endif // __IPU__
