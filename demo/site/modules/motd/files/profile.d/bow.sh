alias bow="echo thank you"
