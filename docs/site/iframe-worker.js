// A worker for pages that were opened from a folder, where a browser starts none: its script runs in a hidden frame.
// The search is such a script. The file's name is the one that the plugin `offline` looks for.
"use strict";

class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    this.frame.srcdoc = "<body></body>";
    this.ready = new Promise((loaded) => this.frame.addEventListener("load", loaded, { once: true })).then(() =>
      this.begin(url),
    );
    document.body.append(this.frame);
  }

  begin(url) {
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = async (...scripts) => {
      for (const each of scripts) await this.load(each);
    };
    return this.load(url);
  }

  load(url) {
    return new Promise((loaded, failed) => {
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      script.addEventListener("load", loaded);
      script.addEventListener("error", () => failed(new Error(`${url} cannot be loaded`)));
      this.frame.contentDocument.body.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
