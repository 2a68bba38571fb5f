package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/kelseyhightower/envconfig"
)

// Read reads a program's settings from the environment and checks them. If the text of a variable is not a value of its
// type, the checks take the default instead, so that one error names every variable that is wrong.
func Read(spec Spec) error {
	errs := []error{}
	for _, f := range Fields(spec) {
		var parse *envconfig.ParseError
		err := f.read(f.Variable)
		if text, ok, wrong := Lookup(f.Variable, f.File); wrong != nil {
			err = errors.Join(wrong, f.read(noVariable))
		} else if ok && f.File != "" {
			f.value.SetString(text)
		}
		if errors.As(err, &parse) {
			err = errors.Join(Mistyped(f.Variable, parse.Value, f.value.Type()), f.read(noVariable))
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, Check(spec))...)
}

// noVariable is a name that no variable can have.
const noVariable = "="

// read sets a field to what a variable says, or to its default.
func (f *Field) read(variable string) error {
	one := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "Value", Type: f.value.Type(), Tag: reflect.StructTag(fmt.Sprintf("envconfig:%q default:%q", variable, f.tagged)),
	}}))
	value := one.Elem().Field(0)
	value.Set(f.value) // what the constructor set
	if err := envconfig.Process("", one.Interface()); err != nil {
		return err
	}
	f.value.Set(value)
	return nil
}

// Mistyped returns the error for a variable whose text is not a value of a type.
func Mistyped(variable, text string, t reflect.Type) error {
	return refuse(variable, text, "not "+inWords(t.String()))
}

// NotOneOf returns the error for a variable whose text is none of the allowed ones.
func NotOneOf(variable, text string, allowed []string) error {
	return refuse(variable, text, "not one of "+strings.TrimPrefix(strings.Join(allowed, ", "), ", "))
}

// inWords names what a value of a type is.
func inWords(typeName string) string {
	switch typeName {
	case "int", "int64", "uint64":
		return "a whole number"
	case "settings.Bytes":
		return inBytes
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "time.Duration":
		return "a duration such as 5s"
	}
	return "a " + typeName
}

// Check applies every rule to a program's settings.
func Check(spec Spec) error {
	errs := []error{}
	for _, f := range Fields(spec) {
		if value := f.text(); len(f.OneOf) > 0 && !slices.Contains(f.OneOf, value) {
			errs = append(errs, NotOneOf(f.Variable, value, f.OneOf))
		}
	}
	return errors.Join(append(errs, spec.Check())...)
}

// ListenAddress returns the address that a program listens on, and whether it serves TLS
// there, read as the program reads them.
func ListenAddress(name string) (address string, tls bool, err error) {
	spec := program(name).New()
	if err := Read(spec); err != nil {
		return "", false, err
	}
	for _, f := range Fields(spec) {
		switch f.Variable {
		case "MNEME_LISTEN":
			address = f.text()
		case "MNEME_TLS_CERT_FILE":
			tls = f.text() != ""
		}
	}
	return address, tls, nil
}

func refuse(variable string, value any, why string) error {
	if text, ok := value.(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	return fmt.Errorf("%s=%v: %s", variable, value, why)
}

// Loopback checks that an address to listen on can't be reached from other machines. Where
// no token is required, every program refuses to listen elsewhere unless the network is
// trusted.
func Loopback(name, address string) error {
	return loopback(name, address, "without tokens mneme listens on loopback only: use an address such as 127.0.0.1:8420")
}

// natsLoopback is [Loopback] for the NATS server of mneme up, which knows no tokens.
func natsLoopback(name, address string) error {
	return loopback(name, address, "the NATS server of mneme up asks for no password: use an address such as 127.0.0.1:4222; a separate NATS server can be reached by others (docs/programs.md)")
}

func loopback(name, address, why string) error {
	if err := hostPort(name, address); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return refuse(name, address, "it is reached from other machines, and "+why)
	}
	return nil
}

func hostPort(name, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return refuse(name, address, "not an address with a port, such as 127.0.0.1:8420")
	}
	return nil
}

func httpURL(name, text, example string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return refuse(name, Redacted(text), "not a URL such as "+example)
	}
	return nil
}

// userPart is everything in a list of URLs that could be part of a user or a password.
var userPart = regexp.MustCompile(`(?s)^([a-z0-9+.-]+://)?.*@`)

// Redacted hides the passwords and tokens in a comma-separated list of URLs. If an entry is not a URL with a host, or has an
// @ where a server's URL has none, nothing shows where its password ends, so Redacted hides everything up to the last @.
func Redacted(list string) string {
	urls := strings.Split(list, ",")
	for i, one := range urls {
		one = strings.TrimSpace(one)
		u, err := url.Parse(one)
		if err != nil || u.Host == "" && strings.Contains(one, "@") || strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") {
			return userPart.ReplaceAllString(list, "${1}xxxxx@")
		}
		if u.User != nil {
			if _, password := u.User.Password(); !password { // then it is a token
				u.User = url.User("xxxxx")
			}
			urls[i] = u.Redacted()
		}
	}
	return strings.Join(urls, ",")
}

func natsURL(list string) error {
	for one := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || (u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss") {
			if strings.Contains(list, "@") {
				one = Redacted(list) // a comma may be in a password
			}
			return refuse("MNEME_NATS_URL", one, "not a NATS URL, such as nats://127.0.0.1:4222")
		}
	}
	return nil
}

func neo4jURI(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"}, u.Scheme) {
		return refuse("MNEME_NEO4J_URI", Redacted(text), "not the URI of a Neo4j server, such as bolt://127.0.0.1:7687")
	}
	if u.User != nil {
		return refuse("MNEME_NEO4J_URI", Redacted(text), "put user and password into MNEME_NEO4J_USER and MNEME_NEO4J_PASSWORD instead")
	}
	return nil
}

func file(name, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return refuse(name, path, "can't be read: "+err.Error())
	}
	if info.IsDir() {
		return refuse(name, path, "is a directory, not a file")
	}
	return nil
}

func positive(name string, value time.Duration) error {
	if value <= 0 {
		return refuse(name, value, "not a duration such as 5s")
	}
	return nil
}

func notEmpty(name, value string) error {
	if value == "" {
		return refuse(name, value, "must not be empty")
	}
	return nil
}

func notNegative(name string, value int64) error {
	if value < 0 {
		return refuse(name, value, "must not be negative")
	}
	return nil
}

func between(name string, value, low, high int) error {
	if value < low || value > high {
		return refuse(name, value, fmt.Sprintf("not between %d and %d", low, high))
	}
	return nil
}

func directory(name, path string) error {
	if path == "" {
		return refuse(name, path, "must not be empty: name a directory, such as .mneme")
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return refuse(name, path, "is a file, not a directory")
	}
	return nil
}

// Problem is a mistake in the environment.
type Problem struct {
	Variable string
	Unknown  bool // no program has a setting of this name
	Reason   string
}

// Environment lists the variables whose value a program refuses, and those with our prefix
// that no program knows. It skips the variables of the project's own tests.
func Environment() []Problem {
	known := []string{}
	reasons := map[string]string{}
	for _, p := range Programs() {
		for _, f := range Fields(p.New()) {
			if known = append(known, f.Variable); f.File != "" {
				known = append(known, f.File)
			}
		}
		if err := Read(p.New()); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				variable, _, _ := strings.Cut(line, "=")
				if _, set := os.LookupEnv(variable); set {
					reasons[variable] = line
				}
			}
		}
	}
	list := []Problem{}
	for _, pair := range os.Environ() {
		variable, _, _ := strings.Cut(pair, "=")
		if reason, bad := reasons[variable]; bad {
			list = append(list, Problem{variable, false, reason})
		} else if strings.HasPrefix(variable, prefix) && !strings.HasPrefix(variable, testPrefix) && !forNATSServer(variable) && !slices.Contains(known, variable) {
			list = append(list, Problem{variable, true, variable + ": no program knows this name" + didYouMean(variable, known)})
		}
	}
	slices.SortFunc(list, func(a, b Problem) int { return strings.Compare(a.Variable, b.Variable) })
	return list
}

// didYouMean suggests the nearest known word, if one is near.
func didYouMean(word string, known []string) string {
	if direct, ok := strings.CutSuffix(word, fileSuffix); ok && slices.Contains(known, direct) {
		return "; set " + direct + " to what the file holds"
	}
	best, least := "", 4
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}
