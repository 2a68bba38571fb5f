package natsdeploy

// What the tests need; they run a server, whose package imports this one.
const (
	SchemaKey       = schemaKey
	CodeStoreFailed = codeStoreFailed
)

var (
	Compare    = compare
	Ungoverned = ungoverned
)
