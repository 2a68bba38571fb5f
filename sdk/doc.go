// Package sdk tests the clients in Python and TypeScript, which are in the folders python and
// typescript, and generates what can be generated of them: the types of what the API takes and
// answers, and the synchronous client in Python from the asynchronous one.
//
// [contract.json] says what every client must do. A client's driver makes the calls and prints
// what they returned; the test in this package compares that, and the log, with the contract.
//
// [contract.json]: https://mneme.dev/mneme/sdk/contract.json
package sdk

//go:generate go run ./internal/typegen
