// The address bar, which holds the state of the page.

const EVERY = 400; // milliseconds: browsers allow only some hundred changes a minute

export class Address {
  constructor() {
    Object.assign(this, { written: -Infinity, timer: null });
  }

  // At once if the last change is long enough ago, else when it is.
  write(text) {
    clearTimeout(this.timer);
    this.newest = text;
    const wait = this.written + EVERY - performance.now();
    if (wait > 0) this.timer = setTimeout(() => this.flush(), wait);
    else this.flush();
  }

  flush() {
    clearTimeout(this.timer);
    this.written = performance.now();
    history.replaceState(null, "", this.newest);
  }

  // Somebody else has changed the address.
  forget() {
    clearTimeout(this.timer);
  }

  async copy(button, say) {
    this.flush();
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      say("the browser does not allow copying; take the address from its bar");
      return;
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy address"; }, 2000);
  }
}
