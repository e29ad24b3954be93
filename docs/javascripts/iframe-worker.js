// A page that is opened from disk may not start a worker, and the search needs one: there, a hidden frame takes its
// place. It runs the same script in the same thread.

class FrameWorker extends EventTarget {
    constructor(url) {
        super();
        this.frame = document.createElement("iframe");
        this.frame.hidden = true;
        document.body.append(this.frame);
        this.inside = this.frame.contentWindow;
        // What the script posts is for whoever made it; both may hold what the other says no longer than they like.
        this.inside.postMessage = (data) => this.tell(this, structuredClone(data));
        this.inside.importScripts = () => {
            throw new Error("a frame loads no further scripts");
        };
        this.started = new Promise((resolve, reject) => {
            const script = this.frame.contentDocument.createElement("script");
            script.onload = resolve;
            script.onerror = () => reject(new Error(`${url} cannot be loaded`));
            script.src = new URL(url, document.baseURI).href;
            this.frame.contentDocument.body.append(script);
        });
    }

    postMessage(data) {
        const copy = structuredClone(data);
        this.started.then(() => this.tell(this.inside, copy));
    }

    terminate() {
        this.frame.remove();
    }

    tell(target, data) {
        const event = new MessageEvent("message", { data });
        queueMicrotask(() => {
            target.dispatchEvent(event);
            if (target === this && this.onmessage) this.onmessage(event);
        });
    }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
