// The versions of the book beside this one, written by book/workshop/site.py: a script, since a page that is opened from disk may not fetch.
window.bookVersions = { here: "", all: [] };
