package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
)

// A token is "mneme_", 43 characters that encode 256 random bits, and 6 that encode the
// CRC32 of those 43. The prefix lets scanners find leaked tokens, the checksum lets them
// tell a token from a lookalike without asking anyone, and lets a server refuse typing
// mistakes before it hashes.
const (
	prefix      = "mneme_"
	randomBytes = 32
	secretChars = 43
	checkChars  = 6
	tokenChars  = len(prefix) + secretChars + checkChars
	alphabet    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Pattern matches tokens, for secret scanners.
const Pattern = `\bmneme_[0-9A-Za-z]{49}\b`

// Hash is the SHA-256 of a token: all that a server keeps of it.
//
// A slow hash such as Argon2 protects passwords, which people choose and attackers guess.
// Nobody guesses 256 random bits, whatever a guess costs; a slow hash would only let wrong
// tokens keep a server busy.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// idChars is how much of the hash names a token.
const idChars = 12

// ID is the name under which a token is listed and revoked. It reveals nothing about the token.
func (h Hash) ID() string { return h.String()[:idChars] }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%.80q is not a SHA-256 in hexadecimal", text)
	}
	copy(h[:], raw)
	return nil
}

// NewToken returns a new random token.
func NewToken() string {
	var secret [randomBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := base62(new(big.Int).SetBytes(secret[:]), secretChars)
	return prefix + text + checksum(text)
}

// HashOf returns the hash of a token; ok is false if it is malformed.
func HashOf(token string) (h Hash, ok bool) {
	if !IsToken(token) {
		return Hash{}, false
	}
	return sha256.Sum256([]byte(token)), true
}

// IsToken reports whether a text has the form of a token, with a correct checksum.
func IsToken(text string) bool {
	if len(text) != tokenChars || !strings.HasPrefix(text, prefix) {
		return false
	}
	secret := text[len(prefix) : len(prefix)+secretChars]
	return checksum(secret) == text[len(prefix)+secretChars:]
}

func checksum(secret string) string {
	var out [checkChars]byte
	sum := crc32.ChecksumIEEE([]byte(secret))
	for i := checkChars - 1; i >= 0; i-- {
		out[i] = alphabet[sum%uint32(len(alphabet))]
		sum /= uint32(len(alphabet))
	}
	return string(out[:])
}

// base62 writes a number with a fixed number of digits.
func base62(n *big.Int, digits int) string {
	out := make([]byte, digits)
	base, digit := big.NewInt(int64(len(alphabet))), new(big.Int)
	for i := digits - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = alphabet[digit.Int64()]
	}
	return string(out)
}
