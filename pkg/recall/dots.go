package recall

// widened returns a vector as [dots] takes it.
func widened(v Vector) []int16 {
	w := make([]int16, len(v))
	for i, x := range v {
		w[i] = int16(x)
	}
	return w
}

// dotsPlain is [dots] in Go.
func dotsPlain(query []int16, vectors []int8, out []int32) {
	for i := range out {
		q, v := query, vectors[i*len(query):(i+1)*len(query)]
		var s0, s1, s2, s3 int32
		for len(q) >= 4 && len(v) >= 4 { // always equally long; the second test removes bounds checks
			s0 += int32(q[0]) * int32(v[0])
			s1 += int32(q[1]) * int32(v[1])
			s2 += int32(q[2]) * int32(v[2])
			s3 += int32(q[3]) * int32(v[3])
			q, v = q[4:], v[4:]
		}
		for j := range q {
			s0 += int32(q[j]) * int32(v[j])
		}
		out[i] = s0 + s1 + s2 + s3
	}
}
