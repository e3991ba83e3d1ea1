// Sets the chosen colours before anything is painted, so that a dark page never flashes white.
(() => {
  const root = document.documentElement;
  try {
    const chosen = localStorage.getItem("sluice-theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing for us has the system's colours.
  }
})();
