package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Erasing configures what the processes of the API erase by themselves.
type Erasing struct {
	Retention string `name:"retention" envconfig:"MNEME_RETENTION" desc:"erase conversations without an event for this long, by tenant: acme=90d,default=365d; empty erases nothing by itself"`
}

// day is the unit of a retention.
const day = 24 * time.Hour

// maxDays keeps a retention within what a duration can hold.
const maxDays = 100 * 366

// Check reports every invalid setting by its variable.
func (s *Erasing) Check() error {
	_, err := s.Ages()
	return err
}

// Ages returns the retention of each tenant that has one.
func (s *Erasing) Ages() (map[string]time.Duration, error) {
	ages := map[string]time.Duration{}
	if strings.TrimSpace(s.Retention) == "" {
		return ages, nil
	}
	for part := range strings.SplitSeq(s.Retention, ",") {
		at := strings.LastIndexByte(part, '=')
		if at < 0 {
			return nil, fmt.Errorf("MNEME_RETENTION=%q: %q is not TENANT=DAYSd, such as acme=90d", s.Retention, part)
		}
		tenant, age := strings.TrimSpace(part[:at]), strings.TrimSpace(part[at+1:])
		length, ok := days(age)
		switch {
		case tenant == "":
			return nil, fmt.Errorf("MNEME_RETENTION=%q: %q names no tenant", s.Retention, part)
		case !ok:
			return nil, fmt.Errorf("MNEME_RETENTION=%q: %q must be a whole number of days from 1d to %dd", s.Retention, age, maxDays)
		case ages[tenant] != 0:
			return nil, fmt.Errorf("MNEME_RETENTION=%q: tenant %q has two ages", s.Retention, tenant)
		}
		ages[tenant] = length
	}
	return ages, nil
}

// days reads a number of days such as 90d.
func days(text string) (length time.Duration, ok bool) {
	digits, ok := strings.CutSuffix(text, "d")
	n, err := strconv.Atoi(digits)
	return time.Duration(n) * day, ok && err == nil && n >= 1 && n <= maxDays
}

// Auditing configures the audit log of the API's processes.
type Auditing struct {
	AuditRetention string `name:"audit-retention" placeholder:"DAYS" envconfig:"MNEME_AUDIT_RETENTION" default:"365d" desc:"how long the audit log keeps its entries, in days, when it is created"`
}

// Check reports an invalid setting by its variable.
func (s *Auditing) Check() error {
	_, err := s.Age()
	return err
}

// Age returns how long entries are kept; 0 for the default.
func (s *Auditing) Age() (time.Duration, error) {
	if s.AuditRetention == "" {
		return 0, nil
	}
	age, ok := days(s.AuditRetention)
	if !ok {
		return 0, refuse("MNEME_AUDIT_RETENTION", s.AuditRetention, fmt.Sprintf("it must be a whole number of days from 1d to %dd", maxDays))
	}
	return age, nil
}
