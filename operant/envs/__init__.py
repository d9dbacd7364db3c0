"""Problems, each in its native form. Problems know nothing of learners."""
