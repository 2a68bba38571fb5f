// Package static embeds texts without a model server: a text is the sum of a table's rows
// for its word pieces. The table was distilled from all-MiniLM-L6-v2 and is part of the
// binary. Sums are computed without fused operations, so a text has the same bits on every
// machine.
//
// It knows the meaning of single words and nothing about their order; a model that reads
// whole texts finds somewhat more. It knows English, and a few words of other languages.
//
// deploy/embeddings makes table.bin and vocab.txt; NOTICE has the licenses of their
// sources. table.bin holds, all little-endian, the numbers of rows and dimensions as
// uint32, a float32 scale for each row, and the rows as int8.
package static
