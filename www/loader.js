// Starts the application. A module of its own, not a script in the page: a
// strict content security policy allows no inline script.
import init from './zswap-explainer.js';

try {
  await init();
} catch (error) {
  const loading = document.getElementById('loading');
  if (loading) {
    loading.textContent = `The model could not be started: ${error}`;
  }
  throw error;
}
