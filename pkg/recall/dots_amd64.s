#include "textflag.h"

// func dotsAVX2(query *int16, vectors *int8, width, n int, out *int32)
//
// Of 32 bytes of a vector, each half is widened to 16-bit numbers and multiplied with the
// query's; VPMADDWD adds pairs of products. The eight sums are added up at the end.
TEXT ·dotsAVX2(SB), NOSPLIT, $0-40
	MOVQ query+0(FP), SI
	MOVQ vectors+8(FP), DI
	MOVQ width+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), R8

vector:
	TESTQ CX, CX
	JZ    done
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	XORQ  AX, AX

piece:
	VPMOVSXBW (DI)(AX*1), Y2
	VPMOVSXBW 16(DI)(AX*1), Y3
	VPMADDWD  (SI)(AX*2), Y2, Y2
	VPMADDWD  32(SI)(AX*2), Y3, Y3
	VPADDD    Y2, Y0, Y0
	VPADDD    Y3, Y1, Y1
	ADDQ      $32, AX
	CMPQ      AX, DX
	JLT       piece

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (R8)
	ADDQ         DX, DI
	ADDQ         $4, R8
	DECQ         CX
	JMP          vector

done:
	VZEROUPPER
	RET
