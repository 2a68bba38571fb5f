package settings

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
)

// Bytes is a number of bytes, which can be written with a unit, as in the quotas.
type Bytes int64

// inBytes says how a number of bytes is written.
const inBytes = "a number of bytes, such as 5000000, 500MB or 20GiB"

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is not %s", text, inBytes)
	}
	*b = Bytes(n)
	return nil
}
