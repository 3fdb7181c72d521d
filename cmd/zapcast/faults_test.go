package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every fault of docs/faults.md names its tests, and all of them exist.
func TestFaultsPage_namesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)\\w+)(?:/(\\w+))?`")
	sources := map[string]string{} // of the tests, by folder
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || cells[1] == "---" || cells[1] == " known fault " {
			continue
		}
		rows++
		tests := name.FindAllStringSubmatch(cells[len(cells)-2], -1)
		if len(tests) == 0 || len(tests) != len(strings.Fields(cells[len(cells)-2])) {
			t.Errorf("%s: want tests as `folder.TestName`, got %s", cells[1], cells[len(cells)-2])
		}
		for _, test := range tests {
			folder, function, script := test[1], test[2], test[3]
			if _, ok := sources[folder]; !ok {
				sources[folder] = testSource(t, folder)
			}
			if !strings.Contains(sources[folder], "\nfunc "+function+"(") {
				t.Errorf("%s: there is no test %s in %s", cells[1], function, folder)
			}
			if script != "" {
				if _, err := os.Stat(filepath.Join("../..", folder, "testdata/script", script+".txtar")); err != nil {
					t.Errorf("%s: %v", cells[1], err)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("the page has no rows")
	}
}

// testSource returns the text of all tests in a folder of the module.
func testSource(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("no tests in %q: %v", folder, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
