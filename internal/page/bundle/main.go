// Command bundle makes the files of the inspector page from their sources. It runs in the
// folder of the page.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := bundle(); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// bundle leaves names and lines as they are, so that the difference between two versions of
// the committed result can be read.
func bundle() error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	library := func(name string) string { return filepath.Join(here, "preact", name+".mjs") }
	result := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "src/main.tsx", OutputPath: "app"},
			{InputPath: "src/app.css", OutputPath: "style"},
			{InputPath: "src/index.html", OutputPath: "index"},
			{InputPath: "src/icon.svg", OutputPath: "icon"},
		},
		Loader:          map[string]api.Loader{".html": api.LoaderCopy, ".svg": api.LoaderCopy},
		Alias:           map[string]string{"preact": library("preact"), "preact/hooks": library("hooks"), "preact/jsx-runtime": library("jsxRuntime")},
		Bundle:          true,
		Format:          api.FormatESModule,
		Target:          api.ES2022,
		Charset:         api.CharsetUTF8,
		JSX:             api.JSXAutomatic,
		JSXImportSource: "preact",
		LegalComments:   api.LegalCommentsNone,
		Banner:          map[string]string{"js": "// Made by go generate from internal/page/src, and from Preact (MIT, see internal/page/preact/LICENSE)."},
		TreeShaking:     api.TreeShakingTrue,
		Outdir:          "dist",
		Write:           true,
		LogLevel:        api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return fmt.Errorf("%d errors", len(result.Errors))
	}
	return nil
}
