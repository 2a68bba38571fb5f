// Package static embeds texts without a model server: a text is the sum of the rows that
// a table has for its word pieces. The table is distilled from all-MiniLM-L6-v2 and lies
// in the binary, and the sums are computed without fused operations: a text has the same
// bits on every machine.
//
// It knows what words mean alone, and nothing of their order: what a model makes of a
// whole text finds some more. It reads English; of other languages it knows some words.
//
// table.bin and vocab.txt are made by deploy/embeddings; NOTICE has the licences of what
// they are made of. table.bin has, all little-endian, the number of rows and of
// dimensions as uint32, a float32 scale for each row, and the rows as int8.
package static
