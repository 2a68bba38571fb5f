package httpapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// ProjectionName is the name of a projection of mneme.
type ProjectionName string

// Schema implements huma.SchemaProvider.
func (ProjectionName) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, name := range readmodel.Names() {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// rebuildName is a projection's name, or that of all of them. The schema does not restrict it, because
// an unknown name is 404.
type rebuildName string

// Schema implements huma.SchemaProvider.
func (rebuildName) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: strings.Join(append(readmodel.Names(), "or "+rebuild.All), ", ")}
}
