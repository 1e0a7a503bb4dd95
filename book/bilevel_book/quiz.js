// Wakes every quiz that sleeps: a form tells why the answer chosen in it is right or wrong.
document.querySelectorAll(".quiz:not([data-awake])").forEach(function (quiz) {
  quiz.dataset.awake = "yes";
  quiz.addEventListener("keydown", function (event) { event.stopPropagation(); }); // Lab would take the arrow keys
  quiz.addEventListener("submit", function (event) {
    event.preventDefault();
    var chosen = event.target.querySelector("input:checked"), told = event.target.querySelector(".quiz-told");
    var verdict = chosen.value === "right" ? "✓ Right. " : "✗ Not quite. ";
    told.dataset.told = chosen.value;
    told.innerHTML = "<strong>" + verdict + "</strong>" + chosen.parentNode.nextElementSibling.innerHTML;
  });
  quiz.addEventListener("change", function (event) { // what was told belongs to another answer
    var told = event.target.form.querySelector(".quiz-told");
    told.textContent = "";
    delete told.dataset.told;
  });
});
