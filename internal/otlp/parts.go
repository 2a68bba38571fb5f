package otlp

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"mneme.dev/mneme/internal/jsonmarks"
)

// maxParts bounds the spans, attributes, values and other parts of a request, because one may have 2 bytes and take hundreds of
// times that in memory.
const maxParts = 500_000

var errParts = fmt.Errorf("a request has at most %d spans, attributes and values in total: have the exporter send smaller batches", maxParts)

// checkParts returns errParts for a request with too many parts, before it is decoded. It leaves it to the decoder to refuse
// what is malformed.
func checkParts(body []byte, asJSON bool, kind protoreflect.MessageDescriptor) error {
	most := maxParts
	if !asJSON {
		countParts(body, kind, &most, protowire.DefaultRecursionLimit)
	}
	if most < 0 || asJSON && jsonmarks.Exceed(body, "{", maxParts) {
		return errParts
	}
	return nil
}

// countParts subtracts from most the messages within a message of a kind, down to a depth, until it is negative.
func countParts(raw []byte, kind protoreflect.MessageDescriptor, most *int, depth int) {
	for len(raw) > 0 && *most >= 0 {
		number, wire, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		size := protowire.ConsumeFieldValue(number, wire, raw)
		if size < 0 {
			return
		}
		if field := kind.Fields().ByNumber(number); field != nil && field.Message() != nil && wire == protowire.BytesType {
			*most--
			if depth > 0 {
				within, _ := protowire.ConsumeBytes(raw)
				countParts(within, field.Message(), most, depth-1)
			}
		}
		raw = raw[size:]
	}
}

// codec is the codec of gRPC, with a bound on the parts of a request.
type codec struct{ encoding.CodecV2 }

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(proto.Message); ok {
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		if err := checkParts(whole.ReadOnlyData(), false, m.ProtoReflect().Descriptor()); err != nil {
			return err
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}
