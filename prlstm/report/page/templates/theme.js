// Colours as the system has them, or as chosen here; the choice is kept where that is allowed.
(function () {
  "use strict";
  var root = document.documentElement;
  function read() {
    try { return localStorage.getItem("prlstm-theme"); } catch (refused) { return null; }
  }
  function keep(choice) {
    try { localStorage.setItem("prlstm-theme", choice); } catch (refused) { /* as good as it gets */ }
  }
  function use(choice) {
    if (choice === "light" || choice === "dark") {
      root.setAttribute("data-theme", choice);
    } else {
      root.removeAttribute("data-theme");
    }
  }
  use(read());
  document.addEventListener("DOMContentLoaded", function () {
    var box = document.getElementById("theme");
    var known = read() || "auto";
    box.hidden = false;
    box.querySelectorAll("input").forEach(function (input) {
      input.checked = input.value === known;
      input.addEventListener("change", function () { use(input.value); keep(input.value); });
    });
  });
})();
