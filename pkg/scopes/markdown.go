package scopes

import "strings"

// cutMarkdown cuts a document at its headings. What comes before the first one is a section without a name.
func cutMarkdown(s *source) (list []Scope) {
	fence, begin, name := "", 0, ""
	end := func(at int) {
		for at > begin && s.blank(at-1) {
			at--
		}
		for begin < at && s.blank(begin) {
			begin++
		}
		if begin < at {
			list = append(list, Scope{Name: name, Kind: Section, Start: begin + 1, End: at})
		}
	}
	for i := range s.lines {
		line := strings.TrimSpace(s.at(i))
		if mark := fenceOf(line); mark != "" && (fence == "" || strings.HasPrefix(mark, fence) && strings.Trim(line, fence[:1]) == "") {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		switch {
		case fence != "" || line == "":
		case strings.HasPrefix(line, "#"):
			level := len(line) - len(strings.TrimLeft(line, "#"))
			if title := line[level:]; level <= 6 && (title == "" || title[0] == ' ' || title[0] == '\t') {
				end(i)
				begin, name = i, strings.TrimSpace(strings.TrimRight(title, "# "))
			}
		case i > begin && (strings.Trim(line, "=") == "" || len(line) > 2 && strings.Trim(line, "-") == "") && underlined(s, i-1):
			end(i - 1)
			begin, name = i-1, strings.TrimSpace(s.at(i-1))
		}
	}
	end(len(s.lines))
	return list
}

// underlined reports whether a line can be a heading whose next line underlines it.
func underlined(s *source, line int) bool {
	text := s.at(line)
	return !s.blank(line) && (line == 0 || s.blank(line-1)) && !strings.HasPrefix(text, "    ") && !strings.ContainsAny(text[:1], "#>|-*\t")
}

// fenceOf returns the signs that begin or end a block of code, "" if none do.
func fenceOf(line string) string {
	for _, sign := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, sign)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}
