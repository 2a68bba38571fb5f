package recall

import "math"

// ln returns the natural logarithm of a positive number. The standard library uses a
// processor's own logarithm on some machines, whose last bits differ.
func ln(x float64) float64 {
	frac, exp := math.Frexp(x)
	if frac < math.Sqrt2/2 {
		frac *= 2
		exp--
	}
	// ln f = 2 artanh s with s = (f − 1) / (f + 1), |s| < 0.18.
	s := (frac - 1) / (frac + 1)
	s2 := float64(s * s)
	sum := 0.0
	for k := 23.0; k >= 1; k -= 2 {
		sum = float64(sum*s2) + 1/k
	}
	return float64(2*s*sum) + float64(float64(exp)*math.Ln2)
}
