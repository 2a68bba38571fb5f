package events

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The two forms of a subject. An agent publishes to the first; the stream maps the conversation to
// a partition and stores the event under the second.
//
//	mneme.<tenant>.<conversation>.<kind>
//	ev.<partition>.<tenant>.<conversation>.<kind>
const (
	publishPrefix = "mneme."
	storedPrefix  = "ev."

	// PublishFilter matches every subject that an agent can publish to.
	PublishFilter = "mneme.*.*.*"
)

// Address is the address of an event: the tokens of its subject, unescaped.
type Address struct {
	Partition    int // only in the stored form
	Tenant       string
	Conversation string
	Kind         string
}

// Subject returns the NATS subject for publishing an event to this address. Ids are escaped
// reversibly, see [Escape].
//
// It returns an [*Invalid] if a part is empty, too long or not UTF-8.
func (a Address) Subject() (string, error) {
	if err := first(
		token("tenant", a.Tenant, MaxTenantBytes),
		token("subject", a.Conversation, MaxIDBytes),
		token("type", a.Kind, MaxIDBytes)); err != nil {
		return "", err
	}
	return publishPrefix + Escape(a.Tenant) + "." + Escape(a.Conversation) + "." + Escape(a.Kind), nil
}

// token checks a part that will become, or already is, a required token of a subject.
func token(field, value string, limit int) error {
	if value == "" {
		return invalid(field, "is missing")
	}
	return bounded(field, value, limit)
}

// bounded checks a part that may be empty.
func bounded(field, value string, limit int) error {
	switch {
	case len(value) > limit:
		return invalid(field, "is %d bytes long, the limit is %d", len(value), limit)
	case !utf8.ValidString(value):
		return invalid(field, "is not UTF-8")
	}
	return nil
}

// StoredDestination returns the destination of the stream's subject transform for this number of
// partitions.
func StoredDestination(partitions int) string {
	return storedPrefix + "{{partition(" + strconv.Itoa(partitions) + ",1,2)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"
}

// PartitionOf returns the partition of a conversation in a stream that has so many: the one to
// which [StoredDestination] maps it.
func PartitionOf(tenant, conversation string, partitions int) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(Escape(tenant) + Escape(conversation)))
	return int(hash.Sum32() % uint32(partitions))
}

// PartitionFilter matches every stored event of one partition.
func PartitionFilter(partition int) string { return storedPrefix + strconv.Itoa(partition) + ".>" }

// StoredPartition returns the partition in a stored subject, whatever follows it.
func StoredPartition(subject string) (partition int, ok bool) {
	rest, stored := strings.CutPrefix(subject, storedPrefix)
	digits, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	return n, stored && err == nil && n >= 0 && strconv.Itoa(n) == digits
}

// ConversationFilter matches every stored event of one conversation, whatever
// its partition.
func ConversationFilter(tenant, conversation string) string {
	return KindFilter(tenant, conversation, "*")
}

// KindFilter matches every stored event of one conversation that has this kind
// (see [Kind]).
func KindFilter(tenant, conversation, kind string) string {
	return storedPrefix + "*." + Escape(tenant) + "." + Escape(conversation) + "." + kind
}

// StoredFilter matches the stored events of a tenant, a conversation and a kind, whatever their
// partition. An empty part matches everything.
func StoredFilter(tenant, conversation, kind string) string {
	filter := storedPrefix + "*"
	for _, part := range []string{tenant, conversation, kind} {
		if part == "" {
			filter += ".*"
		} else {
			filter += "." + Escape(part)
		}
	}
	return filter
}

// ParseSubject reads a stored or published subject. It accepts only subjects that [Address.Subject]
// and the stream's transform make: each subject has exactly one address, and each address one
// subject.
//
// It returns an [*Invalid] with the field "subject token".
func ParseSubject(subject string) (Address, error) {
	var a Address
	rest, stored := strings.CutPrefix(subject, storedPrefix)
	if stored {
		digits, after, _ := strings.Cut(rest, ".")
		n, ok := StoredPartition(subject)
		if !ok {
			return a, invalid("subject token", "%q is not a partition number", digits)
		}
		a.Partition, rest = n, after
	} else if rest, stored = strings.CutPrefix(subject, publishPrefix); !stored {
		return a, invalid("subject token", "%q begins with neither %q nor %q", subject, publishPrefix, storedPrefix)
	}
	tokens := strings.Split(rest, ".")
	if len(tokens) != 3 {
		return a, invalid("subject token", "%q has %d tokens after its prefix, not tenant, conversation and kind", subject, len(tokens))
	}
	for i, part := range []struct {
		to    *string
		limit int
	}{{&a.Tenant, MaxTenantBytes}, {&a.Conversation, MaxIDBytes}, {&a.Kind, MaxIDBytes}} {
		s, err := Unescape(tokens[i])
		if err == nil {
			err = token("subject token", s, part.limit)
		}
		if err != nil {
			return Address{}, err
		}
		*part.to = s
	}
	return a, nil
}

// Escape turns any text into one subject token. Letters, digits and - _ : / @ = + ~ stay; every
// other byte becomes % and two upper-case hex digits.
func Escape(s string) string {
	if isPlain(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		if c := s[i]; isTokenByte(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

// Unescape is the inverse of [Escape]. It refuses tokens that Escape would not have written, so
// that no two tokens mean the same text.
func Unescape(token string) (string, error) {
	if token == "" {
		return "", invalid("subject token", "is empty")
	}
	if isPlain(token) {
		return token, nil
	}
	out := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '%' {
			if i+2 >= len(token) {
				return "", invalid("subject token", "%q ends inside an escape", token)
			}
			hi, ok1 := upperHex(token[i+1])
			lo, ok2 := upperHex(token[i+2])
			c = hi<<4 | lo
			if !ok1 || !ok2 || isTokenByte(c) {
				return "", invalid("subject token", "%q is not escaped as mneme does it: %%, then two upper-case hex digits, only where needed", token)
			}
			i += 2
		} else if !isTokenByte(c) {
			return "", invalid("subject token", "%q holds the byte %q, which must be escaped", token, []byte{c})
		}
		out = append(out, c)
	}
	if !utf8.Valid(out) {
		return "", invalid("subject token", "%q is not UTF-8", token)
	}
	return string(out), nil
}

// isPlain reports whether a text needs no escaping, as nearly every id does.
func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return true
}

func isTokenByte(c byte) bool { return tokenBytes[c] }

// tokenBytes says for each byte whether Escape leaves it as it is. It is a table because it is
// read for every byte of every subject.
var tokenBytes = func() (plain [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:/@=+~") {
		plain[c] = true
	}
	return plain
}()

func upperHex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
