package settings

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
)

// Field is one setting of a program.
type Field struct {
	Variable string // MNEME_LOG_LEVEL
	Desc     string
	Default  string
	OneOf    []string
	Secret   bool
	File     string // the variable that can name a file with the value instead; "" if none can

	value  reflect.Value
	tagged string // the default of the field's tag
}

// Fields lists the settings of a spec in order, those of embedded structs included.
func Fields(spec Spec) []Field { return fields(reflect.ValueOf(spec).Elem()) }

func fields(v reflect.Value) (list []Field) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			list = append(list, fields(v.Field(i))...)
			continue
		}
		f := Field{Variable: field.Tag.Get("envconfig"), Desc: field.Tag.Get("desc"), Secret: field.Tag.Get("secret") == "true", value: v.Field(i)}
		if f.File = FileOf(f.Variable, field.Tag.Get("file")); f.File != "" {
			f.Desc += "; or " + f.File + " names a file that holds it"
		}
		if values := field.Tag.Get("oneof"); values != "" {
			f.OneOf = strings.Split(values, ",")
		}
		var tagged bool
		if f.tagged, tagged = field.Tag.Lookup("default"); tagged {
			f.Default = f.tagged
		} else if !v.Field(i).IsZero() {
			f.Default = f.text()
		}
		list = append(list, f)
	}
	return list
}

// Flag returns the flag of a variable: log-level for MNEME_LOG_LEVEL.
func Flag(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, prefix), "_", "-"))
}

// isURL reports whether the setting is the address of a server. Other values may have an @, such as the name of a model.
func (f *Field) isURL() bool {
	return slices.ContainsFunc([]string{"_URL", "_URI", "_ENDPOINT"}, func(end string) bool { return strings.HasSuffix(f.Variable, end) })
}

func (f *Field) text() string { return fmt.Sprint(f.value.Interface()) }

// Setting is a setting with its effective value.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, environment, file or default
	Desc   string `json:"meaning"`
}

// Where a setting's value came from.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromFile        = "file" // that a variable of the environment names
	FromDefault     = "default"
)

// masked is shown in place of a secret.
const masked = "(set, not shown)"

// Effective lists the settings of a program and where each value came from. given holds the
// variables that flags have set in spec; the others are read from the environment, valid or
// not.
func Effective(spec Spec, given map[string]bool) []Setting {
	list := []Setting{}
	for _, f := range Fields(spec) {
		s := Setting{Name: f.Variable, Value: f.Default, Source: FromDefault, Desc: f.Desc}
		if value, ok, err := Lookup(f.Variable, f.File); ok || err != nil {
			s.Value, s.Source = value, FromEnvironment
			if f.File != "" && os.Getenv(f.File) != "" {
				s.Source = FromFile
			}
		}
		if given[f.Variable] {
			s.Value, s.Source = f.text(), FromFlag
		}
		if f.isURL() || strings.Contains(s.Value, "://") {
			s.Value = Redacted(s.Value)
		}
		if f.Secret && s.Value != "" {
			s.Value = masked
		}
		list = append(list, s)
	}
	return list
}

// Usage prints a program's variables.
func Usage(w io.Writer, name string) error {
	p := program(name)
	fmt.Fprintf(w, "%s %s.\n\nIt is configured by environment variables:\n\n", p.Name, p.Does)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "  VARIABLE\tMEANING\tDEFAULT")
	for _, f := range Fields(p.New()) {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", f.Variable, f.Desc, f.Default)
	}
	return tw.Flush()
}
