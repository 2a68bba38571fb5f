package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme/events"
)

func TestTheDocumentDescribesEveryEventType(t *testing.T) {
	b := setup(t)
	type schema struct {
		Ref   string `json:"$ref"`
		Items *schema
		OneOf []struct {
			Title      string
			Properties map[string]struct{ Title string }
		}
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
		Paths      map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Schema schema }
				}
			}
		}
	}
	b.get("/openapi.json", &document)
	var described []string
	for _, one := range document.Components.Schemas["CloudEvent"].OneOf {
		require.Equal(t, one.Title, one.Properties["data"].Title)
		described = append(described, one.Title)
	}
	require.Equal(t, events.Types(), described)

	content := document.Paths["/v1/events"].Post.RequestBody.Content
	require.Len(t, content, 3)
	require.Equal(t, "#/components/schemas/CloudEvent", content[events.ContentTypeEvent].Schema.Ref)
	require.Equal(t, "#/components/schemas/CloudEvent", content[events.ContentTypeBatch].Schema.Items.Ref)
}
