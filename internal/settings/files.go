package settings

import (
	"os"
	"slices"
	"strings"
)

// fileSuffix ends the name of the variable that names a file with a setting's value, as Docker and Kubernetes mount secrets.
const fileSuffix = "_FILE"

// FileOf returns the variable that can name a file with the value of a variable, whose field has the tag file with this
// value; "" if there is none.
func FileOf(variable, tag string) string {
	if tag != "true" {
		return ""
	}
	return variable + fileSuffix
}

// FileVariables lists the variables that can name a file with the value of another one.
func FileVariables() []string {
	var list []string
	for _, p := range Programs() {
		for _, f := range Fields(p.New()) {
			if f.File != "" {
				list = append(list, f.File)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Lookup returns what the environment says about a variable, and whether it says anything. The value is that of the variable
// or, without its last line ends, the text of the file that the variable file names; "" stands for none. The error names the
// variable file.
func Lookup(variable, file string) (text string, ok bool, err error) {
	text, ok = os.LookupEnv(variable)
	path := ""
	if file != "" {
		path = os.Getenv(file)
	}
	switch {
	case path == "":
		return text, ok, nil
	case text != "":
		return "", false, refuse(file, path, variable+" is set too: give one of them")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", false, refuse(file, path, "can't be read: "+reason(err))
	}
	if text = strings.TrimRight(string(raw), "\r\n"); text == "" {
		return "", false, refuse(file, path, "the file is empty")
	}
	return text, true, nil
}
