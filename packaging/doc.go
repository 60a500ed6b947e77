// Package packaging owns what Baleen is packed and installed by: packages, an image, a unit, a formula, manual pages.
// It has no code but tests, which hold the pieces to each other and to the program.
package packaging
