// A button before each statement, where scripts run: without them a click selects it whole.
for (const statement of document.querySelectorAll("pre.copy")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copies";
  button.textContent = "Copy";
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(statement);
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
  });
  const both = document.createElement("div");
  both.className = "copying";
  statement.replaceWith(both);
  both.append(button, statement);
}
