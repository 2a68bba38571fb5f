package insight

import "sync"

// cacheBytes is how many bytes of stored rows a [Cache] holds decoded. Decoded they take about five times as much.
const cacheBytes = 12 << 20

// Cache keeps decoded rows for later queries, because most rows are of past days and no longer change. Its key is the
// row's whole text, so an entry is never outdated. It is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	counts  map[string]map[string]*Model
	details map[string]*Detail
	bytes   int
}

// NewCache makes an empty cache.
func NewCache() *Cache {
	return &Cache{counts: map[string]map[string]*Model{}, details: map[string]*Detail{}}
}

// room makes room for a text. If there is none, it drops everything: a query reads all rows of a time range, so none
// deserves to stay more than another.
func (c *Cache) room(text string) {
	if c.bytes += len(text); c.bytes > cacheBytes {
		clear(c.counts)
		clear(c.details)
		c.bytes = len(text)
	}
}

// day returns a row decoded. Nobody may change it.
func (c *Cache) day(r *Row) (d Day, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d = Day{Date: r.Day, Project: r.Project, Agent: r.Agent}
	if r.Counts != "" {
		models, ok := c.counts[r.Counts]
		if !ok {
			if err := decode(r.Counts, &models); err != nil {
				return d, err
			}
			c.room(r.Counts)
			c.counts[r.Counts] = models
		}
		d.Models = models
	}
	if r.Detail != "" {
		detail, ok := c.details[r.Detail]
		if !ok {
			detail = &Detail{}
			if err := decode(r.Detail, detail); err != nil {
				return d, err
			}
			c.room(r.Detail)
			c.details[r.Detail] = detail
		}
		d.Detail = *detail
	}
	return d, nil
}
