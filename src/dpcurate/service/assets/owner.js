// The owner's link has the key behind a "#", which the browser keeps to itself: it is posted once, for a cookie.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("open"), key = location.hash.slice(1);
  if (!key) return;
  history.replaceState(null, "", location.pathname);
  if (!form) return;
  document.getElementById("key").value = key;
  form.submit();
});
