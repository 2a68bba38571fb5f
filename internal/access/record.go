package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Record is what is kept of a token.
type Record struct {
	Hash    Hash      `json:"sha256"`
	Name    string    `json:"name,omitempty"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at,omitzero"`
	Rights
}

// Issue makes a token with its record. It expires after lifetime; 0 means never.
func Issue(rights Rights, name string, now time.Time, lifetime time.Duration) (token string, r Record, err error) {
	if err := rights.Check(); err != nil {
		return "", Record{}, err
	}
	token = NewToken()
	hash, _ := HashOf(token)
	r = Record{Hash: hash, Name: name, Created: now.UTC().Truncate(time.Second), Rights: rights}
	if lifetime > 0 {
		r.Expires = r.Created.Add(lifetime)
	}
	return token, r, r.check()
}

func (r *Record) check() error {
	if r.Hash == (Hash{}) {
		return errors.New("sha256 is missing")
	}
	if strings.ContainsAny(r.Name, "\r\n") || len(r.Name) > maxName {
		return fmt.Errorf("the name must be one line of at most %d bytes", maxName)
	}
	return r.Rights.Check()
}

// parseRecord reads a record. It refuses members that it does not know, and what follows the record, because either could
// restrict the token.
func parseRecord(text []byte) (Record, error) {
	var r Record
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Record{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Record{}, errors.New("more follows the record, which is one JSON object and nothing else")
	}
	return r, r.check()
}
