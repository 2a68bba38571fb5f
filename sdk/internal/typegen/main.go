// Typegen writes the types of the clients in other languages from the description of the API
// and the schemas of the events, and the synchronous client in Python from the asynchronous
// one. It runs in the folder sdk: go generate ./sdk.
package main

import (
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("typegen: ")
	types, err := load()
	if err != nil {
		log.Fatal(err)
	}
	asynchronous, err := os.ReadFile("python/src/mneme/_async.py")
	if err != nil {
		log.Fatal(err)
	}
	for file, text := range map[string]string{
		"python/src/mneme/types.py":   python(types),
		"python/src/mneme/_sync.py":   synchronous(string(asynchronous)),
		"typescript/types/types.d.ts": typescript(types),
		"typescript/src/fields.js":    names(types),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
