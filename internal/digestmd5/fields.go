package digestmd5

import (
	"errors"
	"fmt"
	"strings"
)

// The lengths that messages have less than, by the RFC (2.1.1 and 2.1.2).
const (
	challengeLimit = 2048
	responseLimit  = 4096
)

// A field of a message, name=value.
type field struct{ name, value string }

// fields are those of one message, in their order.
type fields []field

// parse reads a message: fields with commas between them. A value is a token or a quoted
// string.
func parse(message []byte, limit int) (fields, error) {
	if len(message) >= limit {
		return nil, fmt.Errorf("%d bytes: must be less than %d", len(message), limit)
	}
	var found fields
	for rest := trimmed(string(message)); rest != ""; {
		if rest[0] == ',' { // empty elements are allowed
			rest = trimmed(rest[1:])
			continue
		}
		name, behind, ok := strings.Cut(rest, "=")
		name = strings.TrimRight(name, space)
		if !ok || name == "" || strings.ContainsAny(name, space+`,"`) {
			return nil, fmt.Errorf("field %d has no name", len(found)+1)
		}
		value, behind, err := takeValue(trimmed(behind))
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		found = append(found, field{strings.ToLower(name), value})
		rest = trimmed(behind)
		if rest != "" && rest[0] != ',' {
			return nil, fmt.Errorf("field %q: no comma after it", name)
		}
	}
	return found, nil
}

// space is what may stand between fields.
const space = " \t\r\n"

func trimmed(s string) string { return strings.TrimLeft(s, space) }

// takeValue takes a token or a quoted string off rest.
func takeValue(rest string) (value, behind string, err error) {
	if !strings.HasPrefix(rest, `"`) {
		end := strings.IndexAny(rest, space+",")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 || strings.Contains(rest[:end], `"`) {
			return "", "", errors.New("has no value")
		}
		return rest[:end], rest[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return b.String(), rest[i+1:], nil
		case '\\':
			if i++; i == len(rest) {
				return "", "", errUnclosed
			}
		}
		b.WriteByte(rest[i])
	}
	return "", "", errUnclosed
}

var errUnclosed = errors.New("a quoted string has no end")

// get returns the value of a field, "" where there is none.
func (fs fields) get(name string) (value string, err error) {
	found := false
	for _, f := range fs {
		if f.name != name {
			continue
		}
		if found {
			return "", fmt.Errorf("field %q comes twice", name)
		}
		value, found = f.value, true
	}
	return value, nil
}

// must is get of a field that there has to be.
func (fs fields) must(name string) (value string, err error) {
	value, err = fs.get(name)
	if err == nil && value == "" {
		err = fmt.Errorf("no field %q", name)
	}
	return value, err
}

// first returns the first value of a field that may come several times, "" where there is
// none.
func (fs fields) first(name string) string {
	for _, f := range fs {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// has reports whether a field, a list, has an element, and also where there is no such
// field.
func (fs fields) has(name, element string) bool {
	for _, f := range fs {
		if f.name != name {
			continue
		}
		for one := range strings.SplitSeq(f.value, ",") {
			if strings.EqualFold(strings.Trim(one, space), element) {
				return true
			}
		}
		return false
	}
	return true
}

// quote writes a quoted string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
