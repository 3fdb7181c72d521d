// Package page is the web page of the server: HTML, style and ES modules as
// they are in assets, without a build step, embedded in the program.
//
// What is ours lies in assets as it was written; what comes from others lies in
// assets/vendor, compressed, as it was published: vendored.json says what it is,
// under which licence, and what it must hash to. docs/page.md describes the
// page, and which answers of the server it lives on.
//
// The files are compressed when the first of them is asked for. Until then they
// are pages of the program's file that nobody has touched.
package page
