package httpapi

import "net/http"

// NewServing is New with another handler in the place of the tools.
func NewServing(c Config, agents http.Handler) http.Handler { return newAPI(c).handler(agents) }
