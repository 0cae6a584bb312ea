// Loads the page again every so often, unless somebody is in the middle of it.
setInterval(() => document.querySelector("main :focus") ?? location.reload(), 15000);
