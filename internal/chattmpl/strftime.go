package chattmpl

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time by the directives of C's strftime in the C locale.
// Unknown directives stay as they are.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		flag := byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		s, ok := directive(t, format[i])
		switch {
		case !ok:
			b.WriteByte('%')
			if flag != 0 {
				b.WriteByte(flag)
			}
			b.WriteByte(format[i])
			continue
		case flag == '-':
			s = trimPad(s)
		case flag == '_':
			if u := trimPad(s); u != s {
				s = strings.Repeat(" ", len(s)-len(u)) + u
			}
		case flag == '0':
			s = strings.ReplaceAll(s, " ", "0")
		case flag == '^':
			s = strings.ToUpper(s)
		case flag == '#':
			if format[i] == 'p' || format[i] == 'Z' {
				s = strings.ToLower(s)
			} else {
				s = strings.ToUpper(s)
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

// trimPad drops leading zeros and spaces of a number, but for its last digit.
func trimPad(s string) string {
	if s == "" || s[0] != '0' && s[0] != ' ' {
		return s
	}
	if t := strings.TrimLeft(s, "0 "); t != "" && isDigit(t[0]) {
		return t
	}
	if strings.Trim(s, "0 ") == "" {
		return "0"
	}
	return s
}

func directive(t time.Time, c byte) (string, bool) {
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case 'a':
		return t.Format("Mon"), true
	case 'A':
		return t.Format("Monday"), true
	case 'b', 'h':
		return t.Format("Jan"), true
	case 'B':
		return t.Format("January"), true
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 2006"), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'd':
		return t.Format("02"), true
	case 'D', 'x':
		return t.Format("01/02/06"), true
	case 'e':
		return t.Format("_2"), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'F':
		return t.Format("2006-01-02"), true
	case 'g', 'G', 'V':
		year, week := t.ISOWeek()
		switch c {
		case 'g':
			return fmt.Sprintf("%02d", year%100), true
		case 'G':
			return fmt.Sprintf("%d", year), true
		}
		return fmt.Sprintf("%02d", week), true
	case 'H':
		return t.Format("15"), true
	case 'I':
		return fmt.Sprintf("%02d", hour12), true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", hour12), true
	case 'm':
		return t.Format("01"), true
	case 'M':
		return t.Format("04"), true
	case 'n':
		return "\n", true
	case 'p':
		return t.Format("PM"), true
	case 'P':
		return t.Format("pm"), true
	case 'r':
		return t.Format("03:04:05 PM"), true
	case 'R':
		return t.Format("15:04"), true
	case 's':
		return fmt.Sprintf("%d", t.Unix()), true
	case 'S':
		return t.Format("05"), true
	case 't':
		return "\t", true
	case 'T', 'X':
		return t.Format("15:04:05"), true
	case 'u':
		return fmt.Sprintf("%d", (int(t.Weekday())+6)%7+1), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), true
	case 'w':
		return fmt.Sprintf("%d", t.Weekday()), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), true
	case 'y':
		return t.Format("06"), true
	case 'Y':
		return fmt.Sprintf("%d", t.Year()), true
	case 'z', 'Z': // the clock is naive, as datetime.now() is
		return "", true
	case '%':
		return "%", true
	}
	return "", false
}
